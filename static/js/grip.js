// The width of the side panel: dragged or set by keys, clamped, and remembered where that is allowed.
const KEY = "dexweb-side-width";
const [LEAST, MOST] = [280, 640];
const STEP = 24;

export function grip(handle, work) {
  let width = 372;

  function set(next) {
    width = Math.round(Math.min(MOST, Math.max(LEAST, next)));
    work.style.setProperty("--side", `${width}px`);
    handle.setAttribute("aria-valuenow", width);
  }
  function remember() {
    try {
      localStorage.setItem(KEY, width);
    } catch {
      // Storage is refused: the width holds for this page.
    }
  }

  try {
    set(Number(localStorage.getItem(KEY)) || width);
  } catch {
    set(width);
  }
  handle.addEventListener("keydown", (event) => {
    const to = { ArrowLeft: width + STEP, ArrowRight: width - STEP, Home: MOST, End: LEAST }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    set(to);
    remember();
  });
  handle.addEventListener("pointerdown", (event) => {
    handle.setPointerCapture(event.pointerId);
    const right = work.getBoundingClientRect().right;
    const move = ({ clientX }) => set(right - clientX);
    handle.addEventListener("pointermove", move);
    handle.addEventListener("lostpointercapture", () => {
      handle.removeEventListener("pointermove", move);
      remember();
    }, { once: true });
  });
}
