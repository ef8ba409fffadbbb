// Keeps <time data-relative> in step with the server's filter `ago`, which wrote the first words.
import { serverNow } from "./clock.js";

const UNITS = [["min", 60, 60], ["h", 3600, 24], ["d", 86400, Infinity]];

function words(at) {
  const seconds = (serverNow() - at) / 1000;
  const size = Math.abs(seconds);
  if (size < 45) return "now";
  const [unit, length] = UNITS.find(([, length, limit]) => Math.round(size / length) < limit);
  const count = Math.round(size / length);
  return seconds > 0 ? `${count} ${unit} ago` : `in ${count} ${unit}`;
}

function freshen() {
  if (document.hidden) return;
  for (const time of document.querySelectorAll("time[data-relative]")) {
    const now = words(Date.parse(time.dateTime));
    if (time.textContent !== now) time.textContent = now;
  }
}

setInterval(freshen, 15_000);
document.addEventListener("visibilitychange", freshen);
