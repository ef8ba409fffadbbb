// When the approve button is ready: every long value was unfolded, or somebody says that it was shown
// in full (the server asks for the same), and no edit waits to be reviewed.
const seen = new Set();

function settle(panel) {
  const folds = [...panel.querySelectorAll("details.fold")];
  folds.filter((fold) => fold.open).forEach((fold) => seen.add(fold.id));
  const box = panel.querySelector("[data-shown]");
  if (box && !box.checked && folds.length && folds.every((fold) => seen.has(fold.id))) box.checked = true;
  const changed = Boolean(panel.querySelector("[data-edit][data-changed]"));
  for (const why of panel.querySelectorAll("[data-why-off]")) why.hidden = !changed;
  for (const button of panel.querySelectorAll('button[value="approve"]')) {
    button.disabled = changed || Boolean(box && !box.checked);
  }
}

const settleAll = () => document.querySelectorAll(".ask").forEach(settle);

document.addEventListener("toggle", (event) => event.target.matches?.("details.fold") && settleAll(), true);
document.addEventListener("change", (event) => event.target.matches?.("[data-shown]") && settleAll());
for (const name of ["edit:changed", "panel:changed", "htmx:afterSettle"]) document.addEventListener(name, settleAll);
// htmx gives back what it disabled while it was sending.
document.addEventListener("htmx:afterRequest", () => setTimeout(settleAll));
settleAll();
