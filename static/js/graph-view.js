// The drawings of a session's turns: selection, and the state of a node as it changes.
// A change of state is one class; a drawing is fetched again only when Steps came.
import { load, paced, replace } from "./fragments.js";
import { zoomAndPan } from "./graph-zoom.js";

const STATES = ["s-ok", "s-run", "s-act", "s-bad", "s-odd", "s-off"];
const nodeId = (step) => `step-${step.replace(/[^A-Za-z0-9-]/g, (char) => `_${char.codePointAt(0).toString(16)}_`)}`;
const stepOf = (node) => node.id.slice(5).replace(/_([0-9a-f]+)_/g, (_, code) => String.fromCodePoint(parseInt(code, 16)));

export function graphView({ select }) {
  let chosen = { step: "", byHand: false };
  // Once a person has chosen a step, or scrolled or zoomed, the drawing stays where they have it.
  let own = false;
  const canvas = () => document.getElementById("canvas");
  const strip = () => document.getElementById("strip");
  const drawings = () => [...(strip()?.querySelectorAll("svg.graph") ?? [])];
  const view = zoomAndPan(canvas, drawings, () => { own = true; });

  function dress() {
    for (const node of strip()?.querySelectorAll("svg .node") ?? []) {
      node.setAttribute("tabindex", "0");
      node.setAttribute("role", "button");
      node.setAttribute("aria-label", node.querySelector("title")?.textContent ?? node.id);
    }
    drawings().forEach((svg) => svg.setAttribute("role", "group"));
    view.size();
    mark();
  }

  function mark() {
    const box = strip();
    if (!box) return;
    box.querySelectorAll(".node.sel").forEach((node) => {
      node.classList.remove("sel");
      node.removeAttribute("aria-pressed");
    });
    const node = chosen.step ? box.querySelector(`#${CSS.escape(nodeId(chosen.step))}`) : null;
    node?.classList.add("sel");
    node?.setAttribute("aria-pressed", "true");
    box.classList.toggle("dimmed", Boolean(node && chosen.byHand));
  }

  // Within the canvas only: the page itself does not move under a reader.
  function reveal(node) {
    const [box, at] = [canvas().getBoundingClientRect(), node.getBoundingClientRect()];
    const margin = 60;
    canvas().scrollLeft += Math.max(0, at.right + margin - box.right) + Math.min(0, at.left - margin - box.left);
    canvas().scrollTop += Math.max(0, at.bottom + margin - box.bottom) + Math.min(0, at.top - margin - box.top);
  }

  /** `byHand`: a person points at it now. `kept`: it is a person's choice, such as an address. */
  function choose(step, byHand, kept = byHand) {
    chosen = { step, byHand };
    mark();
    const node = strip()?.querySelector(".node.sel");
    if (node && !byHand && !own) reveal(node);
    own ||= kept;
  }

  /** The newest step that runs or waits for a person comes into view; where none does, the last one. */
  function keepUp() {
    if (own || !strip()) return;
    const moving = strip().querySelectorAll(".node:is(.s-run, .s-act)");
    const node = [...(moving.length ? moving : strip().querySelectorAll(".node"))].at(-1);
    if (node) reveal(node);
  }

  async function fetchAgain() {
    const box = canvas();
    if (!box) return;
    const fresh = await load(box.dataset.graph);
    if (!fresh || !canvas()) return;
    const place = [box.scrollLeft, box.scrollTop];
    const part = fresh.querySelector("article.part");
    const old = part && document.getElementById(part.id);
    if (old?.matches("article")) {
      replace(old, part);
    } else {
      // A new part: those that a person has opened stay open.
      for (const line of fresh.querySelectorAll("[data-folded]")) {
        const open = document.getElementById(line.id);
        if (open?.matches("article.part[data-by-hand]")) line.replaceWith(open);
      }
      strip().replaceChildren(fresh);
      window.htmx?.process(strip());
    }
    dress();
    [box.scrollLeft, box.scrollTop] = place;
    keepUp();
  }

  const soon = paced(fetchAgain, 500);
  let calm;
  const calmly = () => {
    calm ??= setTimeout(() => {
      calm = undefined;
      soon();
    }, 1500);
  };

  function stateOf({ type, status, outcome }) {
    const rules = JSON.parse(canvas().dataset.states);
    if (rules.outcome[outcome]) return rules.outcome[outcome];
    if (status === "waiting") return rules.waiting[type] ?? "run";
    return rules.status[status] ?? "off";
  }

  function hear(event) {
    if (event.type !== "step.changed" || !canvas()) return;
    const node = document.getElementById(nodeId(event.payload.step_id));
    if (!node?.classList.contains("node")) return soon();
    node.classList.remove(...STATES);
    node.classList.add(`s-${stateOf(event.payload)}`);
    keepUp();
    // The words below a name, the legend and the times follow at leisure.
    calmly();
  }

  document.addEventListener("click", (event) => {
    const fold = event.target.closest(".part-fold");
    if (fold) {
      const open = fold.getAttribute("aria-expanded") !== "true";
      fold.setAttribute("aria-expanded", open);
      document.getElementById(fold.getAttribute("aria-controls")).hidden = !open;
      return undefined;
    }
    const node = event.target.closest("#strip .node");
    if (node) {
      event.preventDefault();
      return select(stepOf(node));
    }
    if (event.target.closest("#canvas") && !event.target.closest("a, button") && !view.dragged()) {
      own = false;
      choose(chosen.step, false);
    }
    return undefined;
  });

  document.addEventListener("keydown", (event) => {
    const node = event.target.closest?.("#strip svg .node");
    if (node && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      select(stepOf(node));
    }
  });

  document.addEventListener("htmx:afterSettle", (event) => {
    const part = event.detail.elt?.closest?.("#strip");
    if (!part) return;
    event.detail.elt.querySelectorAll?.("article.part").forEach((opened) => { opened.dataset.byHand = "1"; });
    if (event.detail.elt.matches("article.part")) event.detail.elt.dataset.byHand = "1";
    dress();
  });

  return {
    hear,
    choose,
    refresh: soon,
    /** After the tab came into view: everything about the drawing is set anew. */
    shown() {
      if (!canvas()) return;
      view.reset();
      document.getElementById("graph-tools").hidden = drawings().length === 0;
      dress();
    },
  };
}
