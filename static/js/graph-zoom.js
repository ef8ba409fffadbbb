// Zoom and pan of the drawings. The canvas scrolls as any page does; zoom is the size of each SVG.
const CLOSEST = 2.5;
const FARTHEST = 0.25;
const USUAL = 1.15;
const READABLE = 0.8;

const natural = (svg) => svg.viewBox.baseVal;

// What scrolls a box, besides the wheel and its bars.
const SCROLL_KEYS = new Set(["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "PageUp", "PageDown", "Home", "End", " ", "Tab"]);

/**
 * `canvas` and `drawings` are asked each time, since both may be swapped; `moved` is called when a
 * person zooms or scrolls.
 */
export function zoomAndPan(canvas, drawings, moved) {
  let zoom;

  function fitting() {
    const widest = Math.max(...drawings().map((svg) => natural(svg).width), 1);
    return Math.min(USUAL, Math.max(READABLE, (canvas().clientWidth - 48) / widest));
  }

  function size() {
    zoom ??= fitting();
    for (const svg of drawings()) {
      svg.setAttribute("width", natural(svg).width * zoom);
      svg.setAttribute("height", natural(svg).height * zoom);
    }
  }

  /** To the scale `next`, with what is at `at` staying where it is. */
  function zoomTo(next, at) {
    const box = canvas();
    const from = zoom;
    zoom = Math.min(CLOSEST, Math.max(FARTHEST, next));
    const x = at?.x ?? box.clientWidth / 2;
    const y = at?.y ?? box.clientHeight / 2;
    const [left, top] = [box.scrollLeft + x, box.scrollTop + y];
    size();
    box.scrollLeft = left * (zoom / from) - x;
    box.scrollTop = top * (zoom / from) - y;
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-zoom]");
    if (!button || !canvas()) return;
    const to = { in: () => zoom * 1.2, out: () => zoom / 1.2, fit: fitting }[button.dataset.zoom];
    moved();
    zoomTo(to());
  });
  document.addEventListener("wheel", (event) => {
    const box = event.target.closest?.("#canvas");
    if (!box) return;
    moved();
    if (!(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    const { left, top } = box.getBoundingClientRect();
    zoomTo(zoom * Math.exp(-event.deltaY / 600), { x: event.clientX - left, y: event.clientY - top });
  }, { passive: false });

  document.addEventListener("touchmove", (event) => event.target.closest?.("#canvas") && moved(), { passive: true });
  document.addEventListener("keydown", (event) => SCROLL_KEYS.has(event.key) && event.target.closest?.("#canvas") && moved());
  document.addEventListener("pointerdown", ({ target, offsetX, offsetY }) => {
    if (target === canvas() && (offsetX >= target.clientWidth || offsetY >= target.clientHeight)) moved();
  });

  return { size, dragged: dragging(canvas, moved), reset() { zoom = undefined; } };
}

/** Dragging the ground with a mouse; answers whether the last press was a drag. Touch scrolls anyway. */
function dragging(canvas, pulled) {
  let drag;
  let moved = false;

  document.addEventListener("pointerdown", (event) => {
    moved = false;
    if (event.pointerType !== "mouse" || event.button) return;
    if (!event.target.closest("#canvas") || event.target.closest("a, button, .node, .legend")) return;
    const box = canvas();
    drag = { x: event.clientX + box.scrollLeft, y: event.clientY + box.scrollTop, from: [event.clientX, event.clientY] };
  });
  document.addEventListener("pointermove", (event) => {
    if (!drag) return;
    moved ||= Math.hypot(event.clientX - drag.from[0], event.clientY - drag.from[1]) > 4;
    if (!moved) return;
    pulled();
    event.preventDefault();
    canvas().classList.add("panning");
    canvas().scrollLeft = drag.x - event.clientX;
    canvas().scrollTop = drag.y - event.clientY;
  });
  document.addEventListener("pointerup", () => {
    drag = undefined;
    canvas()?.classList.remove("panning");
  });
  return () => moved;
}
