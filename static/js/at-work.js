// The sessions that this one has delegated to and waits for: what becomes of them is no event of this
// one's, so their news come as the list of sessions gets them.
import { wake } from "./wake.js";

/** Answers with a function to call whenever the head was drawn; `changed` is called at each news. */
export function atWork(changed) {
  let close;

  const ids = () => [...document.querySelectorAll("#session-head [data-child]")].map((line) => line.dataset.child);

  function heard(message) {
    if (message.more || message.ids?.some((id) => ids().includes(id))) changed();
  }

  return function watch() {
    if (ids().length) {
      // What happened before the socket was there is asked for once.
      close ??= wake(`${document.body.dataset.root}ws/sessions`, { heard, opened: changed });
    } else {
      close?.();
      close = undefined;
    }
  };
}
