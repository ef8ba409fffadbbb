// "I'm on it", taken by itself once an approver begins to edit or to type a reason.
const PAUSE = 400;
const asked = new Set();
let timer;

function take(panel) {
  if (!panel.isConnected || asked.has(panel.id)) return;
  const form = panel.querySelector('[data-hold="none"] [data-hold-form]');
  if (!form || !window.htmx) return;
  // Once for each approval: who lets go while typing means it.
  asked.add(panel.id);
  // A panel drawn a moment ago may not be wired yet; sent as a plain form it would leave the page.
  window.htmx.process(form);
  form.requestSubmit();
}

document.addEventListener("input", (event) => {
  const panel = event.target.closest?.(".choose")?.closest("[data-refresh]");
  if (!panel || event.target.matches("[type=checkbox]")) return;
  clearTimeout(timer);
  if (panel.querySelector(".htmx-request")) return;
  timer = setTimeout(() => take(document.getElementById(panel.id) ?? panel), PAUSE);
});

// Who decides has no more need of it.
document.addEventListener("submit", (event) => event.target.matches(".decide, .answer") && clearTimeout(timer), true);

// A form that stays as it is while the panel around it is drawn anew still says who else is on it.
function tell(panel) {
  const words = panel.querySelector("[data-held]");
  if (!words) return;
  const who = panel.querySelector('[data-hold="other"] .hold-who b');
  words.hidden = !who;
  if (who) words.querySelector("b").replaceChildren(...who.cloneNode(true).childNodes);
}

for (const name of ["panel:changed", "htmx:afterSettle"]) {
  document.addEventListener(name, () => document.querySelectorAll(".ask").forEach(tell));
}
