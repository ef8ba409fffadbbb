// Keeps what is typed into [data-draft] fields until it was taken: an expired sign-in loses nothing.
// Only for this tab, and forgotten at sign-out.
const key = (field) => `dexweb-draft:${field.dataset.draft}`;

function storage() {
  try {
    return window.sessionStorage;
  } catch {
    return null;
  }
}

function restore() {
  for (const field of document.querySelectorAll("[data-draft]")) {
    const kept = storage()?.getItem(key(field));
    if (kept && !field.value && !field.dataset.restored) field.value = kept;
    field.dataset.restored = "1";
  }
}

/** Forgets every draft whose name begins with `prefix`. */
export function forget(prefix = "") {
  const store = storage();
  if (!store) return;
  for (const name of Object.keys(store)) {
    if (name.startsWith(`dexweb-draft:${prefix}`)) store.removeItem(name);
  }
}

document.addEventListener("input", (event) => {
  if (!event.target.matches?.("[data-draft]")) return;
  try {
    storage()?.setItem(key(event.target), event.target.value);
  } catch {
    // Full or refused: the field itself still holds the text.
  }
});
document.addEventListener("submit", (event) => {
  if (event.target.matches("[data-sign-out]")) forget();
});
document.addEventListener("htmx:afterSettle", restore);
// The answer to a sent form names the drafts it took.
document.addEventListener("draft:taken", (event) => forget(event.detail.value));
document.querySelectorAll("[data-draft-taken]").forEach((element) => forget(element.dataset.draftTaken));
restore();
