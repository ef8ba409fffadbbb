// Selecting lines of the inbox, to review and decide them together. What is selected lasts over pages
// of the list for as long as this tab does; x selects, a and r open the line to be decided there.
const KEPT = "dexweb-batch";
const FIELDS = "input:not([type=checkbox]), textarea, select, [contenteditable]";

const bar = document.querySelector("[data-batch-bar]");
if (bar) start(bar);

function start(bar) {
  const words = bar.querySelector("[data-batch-words]");
  const review = bar.querySelector("[data-batch-review]");
  const clear = bar.querySelector("[data-batch-clear]");
  const most = Number(bar.dataset.most);
  const list = document.querySelector(".approvals");
  const chosen = new Set(read());

  const boxes = (under = list) => [...under.querySelectorAll("[data-pick]")];

  // A line that was brought up to date is a new element: it takes over what was chosen, and a line
  // that can no longer be decided is chosen no more.
  function show() {
    for (const row of list.querySelectorAll("[data-row]")) {
      const box = row.querySelector("[data-pick]");
      if (box) box.checked = chosen.has(box.value);
      else chosen.delete(row.dataset.row);
    }
    const over = chosen.size > most;
    words.textContent = !chosen.size ? "Select lines to decide them together"
      : over ? `${chosen.size} selected; at most ${most} go together`
      : `${chosen.size} selected`;
    review.textContent = chosen.size ? `Review ${chosen.size}` : "Review selected";
    review.disabled = !chosen.size || over;
    clear.hidden = !chosen.size;
    bar.classList.toggle("on", chosen.size > 0);
    write([...chosen]);
  }

  function choose(box, on) {
    if (on) chosen.add(box.value);
    else chosen.delete(box.value);
  }

  list.addEventListener("change", ({ target }) => {
    if (!target.matches("[data-pick]")) return;
    choose(target, target.checked);
    show();
  });
  list.addEventListener("click", ({ target }) => {
    const all = target.closest("[data-pick-twins]");
    if (!all) return;
    const twins = boxes(all.closest("tbody"));
    const on = twins.some((box) => !box.checked);
    twins.forEach((box) => choose(box, on));
    const fold = all.closest("tbody").querySelector("[data-twins-fold]");
    if (on) fold.checked = true;
    show();
  });
  clear.addEventListener("click", () => {
    chosen.clear();
    show();
  });
  bar.addEventListener("submit", () => {
    const here = new Set(boxes().map((box) => box.value));
    for (const id of chosen) if (!here.has(id)) bar.append(hidden(id));
  });
  // Coming back by the browser's own button: nothing is left over from the last submit.
  addEventListener("pageshow", () => {
    bar.querySelectorAll("[data-elsewhere]").forEach((field) => field.remove());
    show();
  });
  new MutationObserver(show).observe(list, { childList: true, subtree: true });

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest?.(FIELDS) || document.querySelector("dialog[open]")) return;
    const row = event.target.closest?.("[data-row]");
    if (!row || !list.contains(row)) return;
    const button = row.querySelector("[data-pick], [data-pick-twins]");
    if (event.key === "x" && button) button.click();
    else if (["a", "r"].includes(event.key) && !event.repeat) row.querySelector("[data-row-link]").click();
    else return;
    event.preventDefault();
  });
  show();
}

function hidden(id) {
  const field = document.createElement("input");
  field.type = "hidden";
  field.name = "id";
  field.value = id;
  field.dataset.elsewhere = "";
  return field;
}

function read() {
  try {
    const kept = JSON.parse(sessionStorage.getItem(KEPT) ?? "[]");
    return Array.isArray(kept) ? kept.filter((id) => typeof id === "string") : [];
  } catch {
    return [];
  }
}

function write(ids) {
  try {
    sessionStorage.setItem(KEPT, JSON.stringify(ids));
  } catch {
    // Full or refused: the choice lasts for this page.
  }
}
