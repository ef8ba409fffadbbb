// The edit form of an approval: fields and raw JSON side by side, each following the other.
// Without scripts the raw JSON alone works.
import { drawFields } from "./edit-fields.js";
import { parse, write } from "./json-exact.js";

const PAUSE = 250;

function start(form) {
  if (form.dataset.started) return;
  form.dataset.started = "1";
  const node = JSON.parse(form.dataset.fields);
  const place = form.querySelector("[data-edit-fields]");
  const raw = form.querySelector("[data-edit-raw]");
  const fault = form.querySelector("[data-edit-fault]");
  const errors = new Map();
  for (const [path, words] of JSON.parse(form.dataset.errors)) {
    errors.set(path, [...(errors.get(path) ?? []), words]);
  }
  const settled = form.hasAttribute("data-unsettled") ? null : raw.defaultValue;
  let value;
  let timer;

  /** Tells whether there is something to review, before anybody approves what stood there first. */
  const tell = () => {
    form.toggleAttribute("data-changed", raw.value !== settled);
    form.dispatchEvent(new CustomEvent("edit:changed", { bubbles: true }));
  };

  const changed = () => {
    raw.value = write(value);
    say("");
    tell();
  };

  function draw() {
    const at = document.activeElement?.closest?.("[data-path]")?.dataset.path;
    place.replaceChildren(drawFields(node, value, { changed, redraw: draw, errors }));
    if (at) place.querySelector(`[data-path="${CSS.escape(at)}"] :is(input, textarea, select, button)`)?.focus();
  }

  function say(words) {
    fault.textContent = words;
    fault.hidden = !words;
    place.classList.toggle("behind", Boolean(words));
    raw.toggleAttribute("aria-invalid", Boolean(words));
  }

  function read() {
    try {
      const next = parse(raw.value);
      if (!(next instanceof Map)) throw new SyntaxError("The arguments must be an object: { … }");
      value = next;
      say("");
      draw();
    } catch (error) {
      say(`${error.message}. The fields above wait until this is JSON again.`);
    }
  }

  raw.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(read, PAUSE);
    tell();
  });
  read();
  tell();
}

function startAll() {
  document.querySelectorAll("[data-edit]").forEach(start);
}

// Opened by key or by hand, the first field is where one types.
document.addEventListener("toggle", (event) => {
  if (!event.target.matches?.("details.edit") || !event.target.open) return;
  startAll();
  event.target.querySelector(".edit-fields :is(input, textarea, select), [data-edit-raw]")?.focus();
}, true);
document.addEventListener("htmx:afterSettle", startAll);
document.addEventListener("panel:changed", startAll);
startAll();
