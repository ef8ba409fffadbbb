// Draws a form for a JSON value from the fields that the server read off the tool's schema
// (approvals_app.edit_form.edit_fields). The value is changed in place; what has no field of its own
// is a box of JSON.
import { isNumber, Num, parse, write } from "./json-exact.js";

const PLAIN = /^[a-zA-Z][a-zA-Z0-9_]*$/;
/** A JSON path below `path`, spelled as the server's refusals spell it. */
const below = (path, name) => {
  if (typeof name === "number") return `${path}[${name}]`;
  return PLAIN.test(name) ? `${path}.${name}` : `${path}['${name}']`;
};

function make(tag, properties = {}, ...inner) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...inner);
  return element;
}

/** A value to begin with, when a field is added. */
export function blank(node) {
  switch (node.kind) {
    case "object": return new Map(node.fields.filter((f) => f.required).map((f) => [f.name, blank(f)]));
    case "list": return [];
    case "boolean": return false;
    case "integer": case "number": return new Num("0");
    case "choice": return parse(node.options[0] ?? "null");
    case "text": return "";
    default: return null;
  }
}

const fits = (node, value) => ({
  object: value instanceof Map,
  list: Array.isArray(value),
  boolean: typeof value === "boolean",
  text: typeof value === "string",
  number: value instanceof Num || typeof value === "string",
  integer: value instanceof Num || typeof value === "string",
  choice: true,
  null: value === null,
}[node.kind] ?? false);

/**
 * The fields of `value`, a Map. `changed()` follows every change, `redraw()` one of the structure;
 * `errors` maps a JSON path to words.
 */
export function drawFields(node, value, { changed, redraw, errors }) {
  const set = (owner, name, next) => {
    if (owner instanceof Map) owner.set(name, next);
    else owner[name] = next;
    changed();
  };

  function controls(node, owner, name, path) {
    const current = owner instanceof Map ? owner.get(name) : owner[name];
    if (current === null && node.nullable) return nothing();
    if (!fits(node, current)) return box(current, owner, name);
    const kinds = { object: members, list: items, boolean: flag, choice: choices, null: nothing };
    return (kinds[node.kind] ?? line)(node, current, owner, name, path);
  }

  const nothing = () => make("span", { className: "quiet", textContent: "null" });

  function line(node, current, owner, name) {
    const numeric = node.kind !== "text";
    const lines = !numeric && !node.format;
    const field = make(lines ? "textarea" : "input", {
      className: "input",
      value: current instanceof Num ? current.text : current,
    });
    if (lines) field.rows = 1;
    else field.type = node.format === "date" ? "date" : "text";
    if (field.type === "date" && field.value !== current) {
      field.type = "text";
      field.value = current;
    }
    if (numeric) field.inputMode = node.kind === "integer" ? "numeric" : "decimal";
    if (node.format === "date-time") field.placeholder = "2026-03-01T12:00:00Z";
    field.addEventListener("input", () => {
      const text = numeric ? field.value.trim() : field.value;
      // What is no number is sent as it was typed, and refused at its field.
      set(owner, name, numeric && isNumber(text) ? new Num(text) : text);
    });
    return field;
  }

  function flag(node, current, owner, name) {
    const field = make("select", { className: "input" }, make("option", { textContent: "true" }), make("option", { textContent: "false" }));
    field.value = String(current);
    field.addEventListener("change", () => set(owner, name, field.value === "true"));
    return field;
  }

  function choices(node, current, owner, name) {
    const now = write(current, " ");
    const options = node.options.includes(now) ? node.options : [now, ...node.options];
    const plain = (json) => (json.startsWith('"') ? JSON.parse(json) : json);
    const field = make("select", { className: "input" }, ...options.map((json) => make("option", { value: json, textContent: plain(json) })));
    field.value = now;
    field.addEventListener("change", () => set(owner, name, parse(field.value)));
    return field;
  }

  function box(current, owner, name) {
    const field = make("textarea", { className: "input mono", value: write(current), rows: 2, spellcheck: false });
    field.addEventListener("input", () => {
      try {
        set(owner, name, parse(field.value));
        field.setCustomValidity("");
      } catch (error) {
        field.setCustomValidity(error.message);
        field.reportValidity();
      }
    });
    return field;
  }

  function button(words, label, act) {
    const made = make("button", { type: "button", className: "btn small ghost", textContent: words });
    made.setAttribute("aria-label", label);
    made.addEventListener("click", () => {
      act();
      changed();
      redraw();
    });
    return made;
  }

  function items(node, current, owner, name, path) {
    const rows = current.map((_, place) => row(node.item, current, place, below(path, place), `${place + 1}`,
      button("Remove", `Remove item ${place + 1} of ${name}`, () => current.splice(place, 1))));
    return make("div", { className: "edit-group" }, ...rows,
      button("Add an item", `Add an item to ${name}`, () => current.push(blank(node.item))));
  }

  function members(node, current, owner, name, path) {
    const known = new Set(node.fields.map((field) => field.name));
    const rows = node.fields.map((field) => member(field, current, below(path, field.name)));
    const others = [...current.keys()].filter((extra) => !known.has(extra));
    return make("div", { className: "edit-group" }, ...rows, ...others.map((extra) =>
      row({ kind: "json" }, current, extra, below(path, extra), extra,
        button("Remove", `Remove ${extra}`, () => current.delete(extra)))));
  }

  function member(field, owner, path) {
    if (!owner.has(field.name)) {
      const add = button("Add", `Add ${field.name}`, () => owner.set(field.name, blank(field)));
      return make("div", { className: "edit-row absent" }, make("span", { textContent: field.name }), make("span", { className: "quiet", textContent: "left out" }), add);
    }
    const leave = field.required ? "" : button("Leave out", `Leave out ${field.name}`, () => owner.delete(field.name));
    return row(field, owner, field.name, path, field.name, leave);
  }

  function row(node, owner, name, path, words, action) {
    const current = owner instanceof Map ? owner.get(name) : owner[name];
    const control = controls(node, owner, name, path);
    const head = make("div", { className: "edit-name" }, make("span", { textContent: words }));
    if (node.nullable) {
      head.append(current === null
        ? button("Give a value", `Give ${words} a value`, () => set(owner, name, blank(node)))
        : button("null", `Set ${words} to null`, () => set(owner, name, null)));
    }
    if (action) head.append(action);
    const made = make("div", { className: "edit-row" }, head, control);
    made.dataset.path = path;
    if (control.matches("input, textarea, select")) control.setAttribute("aria-label", node.label ? `${words} (${node.label})` : words);
    if (node.help) made.append(make("p", { className: "help", textContent: node.help }));
    for (const said of errors.get(path) ?? []) {
      if (control.matches(".input")) control.setAttribute("aria-invalid", "true");
      made.append(make("p", { className: "error", textContent: said }));
    }
    return made;
  }

  return members(node, value, null, "", "$");
}
