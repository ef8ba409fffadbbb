// Dialogs and the user menu: opened by [data-dialog="id"], closed by Esc, a click outside or [data-close].
// While a form inside is sending, the dialog stays: its answer has to be seen.
const sending = (dialog) => dialog.querySelector("form.htmx-request, form[aria-busy='true']");

/** Opens the dialog; the browser gives the focus back to its opener on close. */
export function open(dialog) {
  if (dialog.open) return;
  dialog.showModal();
}

// "cancel" does not bubble, so it is caught on its way down.
document.addEventListener("cancel", (event) => {
  if (event.target.matches?.("dialog") && sending(event.target)) event.preventDefault();
}, true);

document.addEventListener("click", (event) => {
  const opener = event.target.closest("[data-dialog]");
  if (opener) {
    const dialog = document.getElementById(opener.dataset.dialog);
    opener.closest("details")?.removeAttribute("open");
    if (dialog) open(dialog);
    return;
  }
  const dialog = event.target.closest("dialog");
  const outside = event.target === dialog;
  if (dialog && !sending(dialog) && (outside || event.target.closest("[data-close]"))) dialog.close();

  for (const menu of document.querySelectorAll("[data-menu][open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const menu of document.querySelectorAll("[data-menu][open]")) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
});
