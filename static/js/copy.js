// [data-copy]: puts the text beside it on the clipboard.
const BACK_AFTER = 2000;

async function copy(field) {
  field.select();
  try {
    await navigator.clipboard.writeText(field.value);
    return true;
  } catch {
    // No clipboard without https, or refused: the old way works on what is selected.
    return document.execCommand("copy");
  }
}

document.addEventListener("click", async ({ target }) => {
  const button = target.closest("[data-copy]");
  const field = button?.parentElement.querySelector("textarea");
  if (!field) return;
  const words = button.textContent;
  button.textContent = (await copy(field)) ? "Copied" : "Selected; copy it by key";
  setTimeout(() => (button.textContent = words), BACK_AFTER);
});
