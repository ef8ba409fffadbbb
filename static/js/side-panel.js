// The panel at the side: the Step that is selected, or what waits for a person. While somebody types
// in it nothing is taken away; a note says that there is news.
import { excuse, load, paced, replace } from "./fragments.js";

// Long enough to read what became of an approval.
const CALM = 3_000;
const MOVING = new Set(["scheduled", "active", "waiting"]);
const QUIET = new Set(["AwaitMessage", "ResumeTurn"]);

export function sidePanel({ steps, chosen }) {
  const side = document.getElementById("side");
  const body = () => document.getElementById("side-body");
  let asked = 0;
  let wanted = body().dataset.step;
  let byHand = false;
  let reading = false;
  let calm;
  // Steps that were heard to run or wait, the newest last, and those that were heard to be over.
  const moving = new Set();
  const over = new Set();

  const typing = () => [...side.querySelectorAll("textarea, input[type=text]")].some((field) => field.value.trim());
  const pending = () => side.querySelector("form[action*='/decide/'], form[action*='/answer/']") !== null;

  async function fetchStep(step) {
    const number = ++asked;
    side.setAttribute("aria-busy", "true");
    try {
      const fresh = await load(steps(step));
      // Somebody selected another one meanwhile: the newest question counts.
      if (number !== asked || !fresh) return false;
      const next = fresh.querySelector("#side-body");
      if (!next) return false;
      body().replaceWith(next);
      window.htmx?.process(next);
      document.dispatchEvent(new CustomEvent("htmx:afterSettle", { detail: { elt: next } }));
      return true;
    } catch (error) {
      excuse(error);
      return false;
    } finally {
      if (number === asked) {
        side.removeAttribute("aria-busy");
        wanted = body().dataset.step;
      }
    }
  }

  /** `hand`: a person chose it just now. `open`: their choice, by an address; on a phone the panel comes over the page. */
  async function show(step, { hand = false, open = hand } = {}) {
    byHand = open;
    reading = false;
    chosen(step, hand, open);
    if (wanted !== step) {
      wanted = step;
      if (await fetchStep(step)) side.scrollTop = 0;
    }
    if (open) side.classList.add("open");
  }

  async function fetchAgain() {
    const step = body().dataset.step;
    if (!step) return;
    const fresh = await load(steps(step));
    const next = fresh?.querySelector("#side-body");
    if (!next || body().dataset.step !== step) return;
    // The approval panel looks after itself, and after what is typed in it.
    if (body().dataset.kind === "interrupt" && next.dataset.kind === "interrupt") {
      replace(document.getElementById("side-queue"), next.querySelector("#side-queue"));
    } else if (selecting()) {
      // Text is being selected here, to be copied.
    } else {
      const top = side.scrollTop;
      replace(body(), next);
      side.scrollTop = top;
    }
  }

  const refresh = paced(fetchAgain, 600);

  const selecting = () => side.contains(document.getSelection()?.anchorNode) && !document.getSelection().isCollapsed;

  /** When what it shows is over and nobody reads it: on to the newest Step that runs or waits. */
  function keepUp() {
    calm = undefined;
    const { step, open } = body().dataset;
    const newest = [...moving].at(-1);
    if (!newest || byHand || reading || (open !== undefined && !over.has(step))) return;
    // Its end may have been heard before it is drawn; and what is typed or copied here comes first.
    if (typing() || pending() || selecting()) calm = setTimeout(keepUp, CALM);
    else show(newest);
  }

  function follow({ step_id: step, type, status }) {
    if (QUIET.has(type)) return;
    over.delete(step);
    if (MOVING.has(status)) {
      moving.delete(step);
      moving.add(step);
    } else {
      moving.delete(step);
      if (status !== "planned") over.add(step);
    }
    calm ??= setTimeout(keepUp, CALM);
  }

  function hear(event) {
    if (event.type === "step.changed") follow(event.payload);
    // One gate after another: a panel whose own approval is over makes room for the next.
    const free = !typing() && !pending() && (!byHand || body().dataset.kind === "interrupt");
    if ((event.type === "approval.requested" || event.type === "question.asked") && free) {
      show(event.step_id);
    } else if (/^(approval|question)\./.test(event.type)) {
      refresh();
    } else if (event.type === "step.changed" && !wanted) {
      show(event.step_id);
    } else if (event.step_id && event.step_id === body().dataset.step && event.type !== "model.delta") {
      refresh();
    } else if (event.payload.call_id && side.querySelector(`[data-call-id="${CSS.escape(event.payload.call_id)}"]`)) {
      refresh();
    }
  }

  for (const scrolled of ["wheel", "touchmove"]) side.addEventListener(scrolled, () => { reading = true; }, { passive: true });
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-side-close]")) side.classList.remove("open");
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !document.querySelector("dialog[open]")) side.classList.remove("open");
  });
  return { show, hear, refresh, close: () => side.classList.remove("open") };
}
