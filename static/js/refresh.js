// Panels that keep themselves true: [data-refresh="url"] is fetched anew when something happened,
// and swapped only if its data-version differs. What was typed, and the focus, go over.
import { ask } from "./ask.js";
import { showPending } from "./badge.js";
import { wake } from "./wake.js";

const busy = new WeakSet();
const outdated = new WeakSet();
let approvals;
let events;

const panels = () => [...document.querySelectorAll("[data-refresh]")];

async function refresh(panel) {
  if (busy.has(panel)) {
    // What is being read may be older than the news: it is read once more.
    outdated.add(panel);
    return;
  }
  if (panel.querySelector(".htmx-request")) return;
  busy.add(panel);
  try {
    const response = await ask(panel.dataset.refresh);
    if (!response.ok) return;
    const box = document.createElement("template");
    box.innerHTML = await response.text();
    const next = box.content.firstElementChild;
    if (next && panel.isConnected && !panel.querySelector(".htmx-request")) swap(panel, next);
  } catch {
    // The server is away; the next wake-up or poll asks again.
  } finally {
    busy.delete(panel);
    if (outdated.delete(panel)) refreshSoon();
  }
}

function swap(panel, next) {
  if (next.dataset.version === panel.dataset.version) return;
  const focused = panel.contains(document.activeElement) ? document.activeElement : null;
  const selected = focused?.selectionStart === undefined ? null : [focused.selectionStart, focused.selectionEnd];
  for (const open of panel.querySelectorAll("details[id][open]")) {
    const twin = next.querySelector(`#${CSS.escape(open.id)}`);
    if (twin) twin.open = true;
  }
  // Where what is decided on is the same, the whole form stays: its fields, its edits, its review.
  const kept = panel.querySelector("[data-keep]");
  const place = kept && next.querySelector(`[data-keep="${CSS.escape(kept.dataset.keep)}"]`);
  if (!place) carryOver(panel, next);
  const asked = kept?.querySelector("[popover]:popover-open");
  const scrolled = panel.querySelector(".ask-decide")?.scrollTop;
  panel.replaceWith(next);
  window.htmx?.process(next);
  place?.replaceWith(kept);
  // Taken out of the page it closed; where the form stays, its second step does.
  if (place && asked) asked.showPopover();
  if (scrolled) next.querySelector(".ask-decide").scrollTop = scrolled;
  if (focused) refocus(focused, selected, next);
  say(next.dataset.announce);
  watch();
  document.dispatchEvent(new CustomEvent("panel:changed", { detail: { panel: next } }));
}

/** What was typed goes to the fields of the same name; edits only if there are any, reviewed or not. */
function carryOver(panel, next) {
  const reviewed = panel.querySelector('.decide input[name="args"]');
  for (const field of panel.querySelectorAll("textarea[name]")) {
    const twin = next.querySelector(`textarea[name="${CSS.escape(field.name)}"]`);
    if (!twin || !field.value) continue;
    const edit = field.closest("[data-edit]");
    if (edit && !edit.hasAttribute("data-changed") && !reviewed) continue;
    twin.value = field.value;
    // Decided meanwhile, so there is no form any more: it is shown to be copied.
    twin.closest(".kept")?.removeAttribute("hidden");
  }
}

function refocus(focused, selected, next) {
  if (!focused.isConnected) {
    (next.querySelector(`[name="${CSS.escape(focused.name ?? "")}"]`) ?? next).focus({ preventScroll: true });
    return;
  }
  focused.focus({ preventScroll: true });
  if (selected && selected[0] !== null) focused.setSelectionRange(...selected);
}

function say(words) {
  const voice = document.getElementById("announce");
  if (voice && words) voice.textContent = words;
}

const refreshAll = () => panels().forEach(refresh);
let soon;
const refreshSoon = () => {
  clearTimeout(soon);
  soon = setTimeout(refreshAll, 120);
};

/** Sockets for what the panels on the page need to hear of, and none that they no longer need. */
function watch() {
  const all = panels();
  if (all.length && !approvals) {
    approvals = wake(`${document.body.dataset.root}ws/approvals`, {
      heard: (message) => {
        showPending(message.pending);
        refreshSoon();
      },
      opened: refreshSoon,
    });
  }
  const stream = all.find((panel) => panel.dataset.events)?.dataset.events;
  if (stream && !events) {
    events = { stream, close: wake(stream, { heard: refreshSoon }) };
  } else if (!stream && events) {
    events.close();
    events = undefined;
  }
}

// The fallback when sockets are blocked: while something is still to happen, ask now and then.
let ticks = 0;
setInterval(() => {
  ticks += 1;
  if (document.hidden) return;
  for (const panel of panels()) {
    const every = Number(panel.dataset.poll);
    if (every && ticks % every === 0) refresh(panel);
  }
}, 1000);

document.addEventListener("countdown:over", () => setTimeout(refreshAll, 400));
document.addEventListener("visibilitychange", () => document.hidden || refreshAll());
document.addEventListener("htmx:afterSettle", watch);
// The server's answer to a part of a panel says that the rest is old.
document.addEventListener("panel:stale", refreshSoon);
watch();
