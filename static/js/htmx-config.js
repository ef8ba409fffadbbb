// What htmx leaves to the page: a server that does not answer, and one that answers with no fragment.
const notices = document.getElementById("notices");

/** A notice above the page; it goes when the next request is answered. */
export function notice(words) {
  const box = document.createElement("div");
  box.className = "refusal";
  box.setAttribute("role", "alert");
  box.textContent = words;
  notices.replaceChildren(box);
}

document.addEventListener("htmx:sendError", () => {
  notice("The server cannot be reached. What you typed is still here; try again in a moment.");
});
document.addEventListener("htmx:timeout", () => {
  notice("The server took too long to answer. What you typed is still here; try again in a moment.");
});
document.addEventListener("htmx:responseError", (event) => {
  notice(`The server answered with an error (${event.detail.xhr.status}). What you typed is still here.`);
});
document.addEventListener("htmx:beforeSwap", (event) => {
  const { xhr } = event.detail;
  if (xhr.status >= 400 && /^\s*<div[^>]*\bdata-notice\b/.test(xhr.responseText)) {
    // About the request, not about the fragment: it must not replace what was typed.
    event.detail.target = notices;
    event.detail.swapOverride = "innerHTML";
    return;
  }
  const page = /^\s*(<!doctype|<html)/i.test(xhr.responseText);
  if (xhr.status >= 400 && page) {
    // A proxy's error page, or one of ours for a whole page: it would replace what was typed.
    event.detail.shouldSwap = false;
    notice(`The server answered with an error (${xhr.status}). What you typed is still here.`);
  } else if (xhr.status < 400) {
    notices.replaceChildren();
  }
});
