// Fragments of a page that is being watched: fetched, compared by version, and put in place without
// taking away what a person has there (focus, open details, half-typed text, scroll).

import { ask } from "./ask.js";

/** Someone is signed out: the server answered with its sign-in page, or refused. */
export class SignedOut extends Error {}

/** The fragment at `address`, or null when the server has none for it now. Throws SignedOut. */
export async function load(address) {
  const response = await ask(address);
  if (response.status === 401 || (response.redirected && response.url.includes("/accounts/"))) throw new SignedOut();
  if (!response.ok && response.status !== 404) return null;
  const text = await response.text();
  if (/^\s*(<!doctype|<html)/i.test(text)) return null;
  const box = document.createElement("template");
  box.innerHTML = text;
  return box.content;
}

const version = (element) => Number(element.dataset.version ?? 0);

/** Puts `next` in the place of `old`, unless it was rendered before it. Answers what stands there. */
export function replace(old, next) {
  if (!next || version(next) < version(old)) return old;
  const focused = old.contains(document.activeElement) ? document.activeElement : null;
  for (const open of old.querySelectorAll("details[id][open]")) {
    const twin = next.querySelector(`#${CSS.escape(open.id)}`);
    if (twin) twin.open = true;
  }
  for (const field of old.querySelectorAll("textarea[id]")) {
    const twin = field.value !== field.defaultValue && next.querySelector(`#${CSS.escape(field.id)}`);
    // What the server has by now needs no editing any more.
    if (twin && twin.defaultValue === field.value) twin.closest("details")?.removeAttribute("open");
    else if (twin) twin.value = field.value;
  }
  old.replaceWith(next);
  window.htmx?.process(next);
  if (focused?.id) document.getElementById(focused.id)?.focus({ preventScroll: true });
  else if (focused?.dataset.stepLink) next.querySelector(`[data-step-link="${CSS.escape(focused.dataset.stepLink)}"]`)?.focus({ preventScroll: true });
  return next;
}

/** A fetch failed. A server that is away is no news: the socket's next connection asks for everything. */
export function excuse(error) {
  if (error instanceof SignedOut) document.dispatchEvent(new CustomEvent("session:signed-out"));
}

/** `work` at most once in `pause` ms, never twice at a time, and once more after the last call. */
export function paced(work, pause) {
  let timer;
  let running = false;
  let again = false;
  let last = -Infinity;
  const run = async () => {
    timer = undefined;
    running = true;
    last = performance.now();
    try {
      await work();
    } catch (error) {
      excuse(error);
    }
    running = false;
    if (again) ask();
  };
  const ask = () => {
    if (running) {
      again = true;
    } else if (!timer) {
      again = false;
      timer = setTimeout(run, Math.max(60, last + pause - performance.now()));
    }
  };
  return ask;
}
