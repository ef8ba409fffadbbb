// Writing to the agent and stopping the session: what the two forms need beyond htmx.
import { open } from "./dialog.js";

const composer = () => document.getElementById("composer");

function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

document.addEventListener("keydown", (event) => {
  if (event.target.id !== "composer-text" || event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  event.target.form.requestSubmit();
});

// A request that was refused may be sent again under its id; with another text it is another request.
document.addEventListener("input", (event) => {
  const form = event.target.closest?.("#composer form, #stop-form");
  if (form?.querySelector(".refusal")) form.elements.request_id.value = newId();
});

document.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.requestConfig?.path?.endsWith("/messages/")) document.getElementById("composer-text")?.focus();
});

// The answer to a form names the draft that it took, before the empty form is put in place.
document.addEventListener("draft:taken", (event) => {
  try {
    sessionStorage.removeItem(`dexweb-draft:${event.detail.value}`);
  } catch {
    // Storage is refused, so there is no draft.
  }
});

// The stop dialog. Its opener is part of the head, which may have been replaced meanwhile.
document.addEventListener("click", (event) => {
  const opener = event.target.closest("[data-stop-open]");
  const dialog = document.getElementById("stop-dialog");
  if (!opener || !dialog) return;
  event.preventDefault();
  open(dialog);
  dialog.querySelector("input:checked")?.focus();
});

export function stopDialog() {
  const dialog = document.getElementById("stop-dialog");
  if (!dialog) return;
  dialog.addEventListener("close", () => document.getElementById("stop-open")?.focus());
  dialog.addEventListener("htmx:afterSettle", () => {
    if (dialog.querySelector("[data-done]")) dialog.close();
  });
  if (dialog.open) {
    dialog.close();
    open(dialog);
  }
}

/** The session has ended: nothing can be sent any more, but what was typed is not taken away. */
export function ended(fresh) {
  const text = document.getElementById("composer-text");
  if (!text?.value.trim() && fresh) composer().replaceWith(fresh);
  document.getElementById("stop-dialog")?.close();
}
