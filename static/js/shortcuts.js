// Keys: j/k/o on lists of [data-row], / to [data-search], ? for help, and every [data-shortcut="x"].
// A key belongs to the field while somebody types.
import { open } from "./dialog.js";

const FIELDS = "input:not([type=radio], [type=checkbox], [type=submit]), textarea, select, [contenteditable]";

const shown = (element) => element.checkVisibility?.() ?? element.offsetParent !== null;
const rows = () => [...document.querySelectorAll("[data-row]")].filter(shown);
const link = (row) => row.querySelector("[data-row-link]");

function step(by) {
  const all = rows();
  const at = all.findIndex((row) => row.contains(document.activeElement));
  const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + by))];
  if (!next) return false;
  link(next).focus();
  next.scrollIntoView({ block: "nearest" });
  return true;
}

function openRow() {
  const row = rows().find((candidate) => candidate.contains(document.activeElement));
  if (!row) return false;
  link(row).click();
  return true;
}

function press(key) {
  const target = [...document.querySelectorAll(`[data-shortcut="${CSS.escape(key)}"]`)]
    .find((element) => shown(element) && !element.disabled);
  if (!target) return false;
  if (target.matches(FIELDS)) target.focus();
  else target.click();
  return true;
}

const KEYS = {
  j: () => step(1),
  k: () => step(-1),
  o: openRow,
  "?": () => (open(document.getElementById("help")), true),
  "/": () => {
    const search = [...document.querySelectorAll("[data-search]")].find(shown);
    search?.focus();
    search?.select?.();
    return Boolean(search);
  },
};

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.isComposing || event.repeat && event.key === "a") return;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest?.(FIELDS)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (document.querySelector("dialog[open]")) return;
  const done = KEYS[event.key] ? KEYS[event.key]() : event.key.length === 1 && press(event.key);
  if (done) event.preventDefault();
});
