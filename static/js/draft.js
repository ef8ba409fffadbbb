// Keeps what is typed into [data-draft] fields until it was taken: an expired sign-in loses nothing.
// Only for this tab, and forgotten at sign-out.
const SENT = "dexweb-drafts-sent";
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

/** Forgets every draft whose name begins with `prefix`; all of them by default. */
function forget(prefix = "") {
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

// A sent form's drafts were taken when the next page neither shows their fields again nor asks to
// keep them (as signing in does).
function settle() {
  const sent = storage()?.getItem(SENT);
  if (!sent || document.querySelector("[data-keep-drafts]")) return;
  storage().removeItem(SENT);
  for (const name of sent.split(" ")) {
    if (!document.querySelector(`[data-draft="${CSS.escape(name)}"]`)) forget(name);
  }
}

document.addEventListener("submit", ({ target }) => {
  if (target.matches("[data-sign-out]")) forget();
  const names = [...target.querySelectorAll("[data-draft]")].map((field) => field.dataset.draft);
  if (names.length) storage()?.setItem(SENT, names.join(" "));
});
document.addEventListener("htmx:afterSettle", restore);
settle();
restore();
