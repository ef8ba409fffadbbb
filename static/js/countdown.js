// Counts down [data-countdown] from the time the server says is left.
// Only durations are used, so a wrong client clock, or one that is set meanwhile, changes nothing.
const SPOKEN = [600, 300, 60, 30, 10];
const started = new WeakMap();

/** Seconds as 9:05, 1:02:33 or 3 d 4 h. */
export function clock(seconds) {
  const left = Math.max(0, Math.ceil(seconds));
  const pad = (number) => String(number).padStart(2, "0");
  if (left >= 86400) return `${Math.floor(left / 86400)} d ${Math.floor((left % 86400) / 3600)} h`;
  const [hours, minutes] = [Math.floor(left / 3600), Math.floor((left % 3600) / 60)];
  return hours ? `${hours}:${pad(minutes)}:${pad(left % 60)}` : `${minutes}:${pad(left % 60)}`;
}

function begin(element) {
  const { serverNow, deadline } = element.dataset;
  const left = (Date.parse(deadline) - Date.parse(serverNow)) / 1000;
  started.set(element, { left, from: performance.now(), last: left, over: left <= 0 });
}

function spoken(seconds) {
  return seconds >= 60 ? `${Math.round(seconds / 60)} minutes left` : `${seconds} seconds left`;
}

function tick(element) {
  if (!started.has(element)) begin(element);
  const state = started.get(element);
  const left = state.left - (performance.now() - state.from) / 1000;
  const text = clock(left);
  if (element.textContent !== text) element.textContent = text;
  element.classList.toggle("soon", left <= 60);
  const passed = SPOKEN.find((mark) => state.last > mark && left <= mark);
  const voice = element.parentElement.querySelector("[data-countdown-voice]");
  if (passed && voice) voice.textContent = spoken(passed);
  state.last = left;
  if (left > 0 || state.over) return;
  state.over = true;
  element.dispatchEvent(new CustomEvent("countdown:over", { bubbles: true }));
}

const tickAll = () => document.querySelectorAll("[data-countdown]").forEach(tick);

tickAll();
setInterval(tickAll, 250);
document.addEventListener("htmx:afterSettle", tickAll);
