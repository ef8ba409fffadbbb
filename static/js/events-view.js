// The Events tab: new lines are put on top as they come; a linked event is opened and shown.
import { load, paced } from "./fragments.js";

export function eventsView() {
  const list = () => document.getElementById("events");
  const count = document.getElementById("event-count");

  async function fetchNewer() {
    const box = list();
    if (!box || box.dataset.before) return;
    const newest = Number(box.querySelector("[data-seq]")?.dataset.seq ?? 0);
    const fresh = await load(`${box.dataset.events}?after=${newest}&type=${encodeURIComponent(box.dataset.type)}`);
    if (!fresh?.querySelector("[data-seq]") || list() !== box) return;
    box.querySelector("[data-none]")?.remove();
    for (const twin of fresh.querySelectorAll("[data-seq]")) {
      if (document.getElementById(twin.id)) twin.remove();
    }
    // More came than is shown at once: the list begins anew, and its link leads to what lies between.
    if (fresh.querySelector(".earlier")) box.replaceChildren(fresh);
    else box.prepend(fresh);
    window.htmx?.process(box);
  }

  const refresh = paced(fetchNewer, 600);

  function show(hash) {
    const match = /^#event-(\d+)$/.exec(hash);
    const box = list();
    if (!match || !box) return;
    const line = document.getElementById(hash.slice(1));
    if (!line) {
      const before = Number(match[1]) + 1;
      if (box.dataset.before !== String(before)) location.replace(`${document.getElementById("session").dataset.page}?tab=events&before=${before}${hash}`);
      return;
    }
    box.querySelectorAll(".event.sel").forEach((other) => other.classList.remove("sel"));
    line.classList.add("sel");
    line.querySelector("details").open = true;
    line.scrollIntoView({ block: "nearest" });
  }

  document.addEventListener("change", (event) => {
    if (event.target.id === "event-type") event.target.form.requestSubmit();
  });

  return {
    show,
    refresh,
    hear(event) {
      count.textContent = event.seq.toLocaleString("en");
      if (list()) refresh();
    },
  };
}
