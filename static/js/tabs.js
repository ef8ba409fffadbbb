// Tabs that change the middle of the page and its address, and leave the rest as it is.
import { load } from "./fragments.js";

export function tabs(address, { shown }) {
  const work = document.getElementById("work");
  const middle = document.getElementById("middle");
  let asked = 0;

  const current = () => work.dataset.tab;
  const link = (tab) => document.querySelector(`#tabs [data-tab="${CSS.escape(tab)}"]`);

  /** On a phone the row of tabs is wider than the page. */
  function reveal() {
    const [row, one] = [document.getElementById("tabs"), link(current())];
    if (one) row.scrollLeft = one.offsetLeft - row.offsetLeft - (row.clientWidth - one.offsetWidth) / 2;
  }

  async function fill(tab) {
    const number = ++asked;
    const fresh = await load(`${address}?tab=${tab}&fragment=main`);
    if (number !== asked || !fresh) return false;
    middle.replaceChildren(fresh);
    window.htmx?.process(middle);
    return true;
  }

  async function open(tab, push = true) {
    if (tab === current()) return;
    if (!(await fill(tab))) return;
    work.dataset.tab = tab;
    document.querySelectorAll("#tabs [aria-current]").forEach((other) => other.removeAttribute("aria-current"));
    link(tab)?.setAttribute("aria-current", "page");
    reveal();
    middle.setAttribute("aria-label", link(tab)?.textContent.trim() ?? "");
    if (push) history.pushState({ tab }, "", `${address}?tab=${tab}${location.hash.startsWith("#step-") ? location.hash : ""}`);
    shown();
  }

  document.getElementById("tabs").addEventListener("click", (event) => {
    const target = event.target.closest("[data-tab]");
    if (!target || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open(target.dataset.tab).catch(() => { location.href = target.href; });
  });
  addEventListener("popstate", () => {
    open(new URLSearchParams(location.search).get("tab") ?? "graph", false).catch(() => location.reload());
  });

  reveal();
  return {
    current,
    open: async (tab) => open(tab),
    /** What the open tab shows, fetched anew, its place in the list kept. */
    async refresh() {
      const scroll = middle.querySelector(".scroll");
      const top = scroll?.scrollTop ?? 0;
      if (!(await fill(current()))) return;
      const next = middle.querySelector(".scroll");
      if (next) next.scrollTop = top;
    },
  };
}
