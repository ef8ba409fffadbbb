// Lists that stay where they are: a visible row's content is brought up to date in place; new rows
// wait behind a notice and never move what is under the pointer.
import { ask } from "./ask.js";
import { showPending } from "./badge.js";
import { wake } from "./wake.js";

// The server answers no more lines at once.
const MOST = 100;

const list = document.querySelector("[data-live-list]");
if (list) start(list);

function start(list) {
  const notice = document.querySelector("[data-live-notice]");
  const fresh = new Set();
  let waiting = new Set();
  let timer;
  let asked = 0;

  const rowOf = (id) => list.querySelector(`[data-row="${CSS.escape(id)}"]`);
  const visible = () => [...list.querySelectorAll("[data-row]")].map((row) => row.dataset.row);

  /** `how`: "matching" asks under the page's filters, "together" for lines that are compared. */
  async function fetchRows(ids, how) {
    const number = ++asked;
    const address = new URL(location.href);
    address.searchParams.set("rows", ids.slice(0, MOST).join(","));
    if (how) address.searchParams.set(how, "1");
    const response = await ask(address);
    if (!response.ok) return [];
    const box = document.createElement("template");
    box.innerHTML = `<table><tbody>${await response.text()}</tbody></table>`;
    const rows = [...box.content.querySelectorAll("[data-row]")];
    for (const row of rows) row.dataset.asked = number;
    return rows;
  }

  function replace(row) {
    const old = rowOf(row.dataset.row);
    // A slow answer may come after that to a later question, which knows more.
    if (!old || Number(old.dataset.asked ?? 0) > Number(row.dataset.asked)) return;
    old.dataset.asked = row.dataset.asked;
    if (old.innerHTML === row.innerHTML) return;
    const focused = old.contains(document.activeElement);
    const unfolded = old.querySelector("[data-twins-fold]:checked");
    old.replaceWith(row);
    if (unfolded) row.querySelector("[data-twins-fold]").checked = true;
    if (focused) row.querySelector("[data-row-link]")?.focus();
  }

  /** Lines anew. A twin's are read with all of its group, since what differs is theirs together. */
  async function renew(ids) {
    const groupOf = (id) => {
      const group = rowOf(id).closest(".twins");
      return group?.rows.length <= MOST ? group : null;
    };
    const groups = new Set(ids.map(groupOf).filter(Boolean));
    const alone = ids.filter((id) => !groupOf(id));
    if (alone.length) (await fetchRows(alone)).forEach(replace);
    for (const group of groups) {
      const twins = [...group.querySelectorAll("[data-row]:not(.twins-head)")].map((row) => row.dataset.row);
      (await fetchRows(twins, "together")).forEach(replace);
    }
  }

  async function settle() {
    timer = undefined;
    const ids = [...waiting];
    waiting = new Set();
    const here = ids.filter(rowOf);
    const elsewhere = ids.filter((id) => !rowOf(id) && !fresh.has(id));
    try {
      await renew(here);
      if (elsewhere.length) (await fetchRows(elsewhere, "matching")).forEach((row) => fresh.add(row.dataset.row));
    } catch {
      // The server is away: the socket's next connection asks about every row.
    }
    tell();
  }

  function tell(count = fresh.size) {
    if (!notice || !count) return;
    notice.querySelector("[data-live-count]").textContent = count;
    notice.hidden = false;
  }

  // At most one look a second, however fast things change.
  function later(ids) {
    ids.forEach((id) => waiting.add(id));
    if (waiting.size && !timer) timer = setTimeout(settle, 1000);
  }

  wake(list.dataset.liveList, {
    heard: (message) => {
      showPending(message.pending);
      // "more": so much changed that it was not counted.
      later(message.more ? [...visible(), ...(message.ids ?? [])] : message.ids ?? []);
      if (message.more) tell("Many");
    },
    opened: (again) => again && later(visible()),
  });
}
