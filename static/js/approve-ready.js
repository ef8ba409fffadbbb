// Nobody approves what was folded all along: the button waits until every long value was unfolded, or
// somebody says that it was shown in full. (The server asks for the same.)
const seen = new Set();

function settle(panel) {
  const folds = [...panel.querySelectorAll("details.fold")];
  folds.filter((fold) => fold.open).forEach((fold) => seen.add(fold.id));
  const box = panel.querySelector("[data-shown]");
  if (box && !box.checked && folds.length && folds.every((fold) => seen.has(fold.id))) box.checked = true;
  for (const button of panel.querySelectorAll("[data-needs-shown]")) button.disabled = !box?.checked;
}

const settleAll = () => document.querySelectorAll(".ask").forEach(settle);

document.addEventListener("toggle", (event) => event.target.matches?.("details.fold") && settleAll(), true);
document.addEventListener("change", (event) => event.target.matches?.("[data-shown]") && settleAll());
document.addEventListener("htmx:afterSettle", settleAll);
document.addEventListener("htmx:afterRequest", () => setTimeout(settleAll));
document.addEventListener("panel:changed", settleAll);
settleAll();
