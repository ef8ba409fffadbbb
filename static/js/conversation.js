// The conversation: its last turns are fetched anew when something in them changed, and text that is
// being written is appended as it comes.
import { load, paced, replace } from "./fragments.js";

const CHANGES = /^(message|turn|tool|approval|question|session)\.|^model\.(started|completed|failed)$/;
const NEAR = 80;

export function conversation(address) {
  const list = document.getElementById("talk-list");
  const scroll = document.getElementById("talk-scroll");
  const pieces = new Map();

  // On a phone the page scrolls, not the pane; and then only while the conversation is what is shown.
  const scroller = () => (getComputedStyle(scroll).overflowY === "visible" ? document.scrollingElement : scroll);
  const atEnd = () => {
    const box = scroller();
    return list.checkVisibility() && box.scrollHeight - box.scrollTop - box.clientHeight < NEAR;
  };
  const toEnd = () => {
    if (list.checkVisibility()) scroller().scrollTop = scroller().scrollHeight;
  };
  const turns = () => [...list.querySelectorAll(":scope > .turn")];

  function keepingEnd(change) {
    const end = atEnd();
    change();
    if (end) toEnd();
  }

  function write(step, text) {
    const place = list.querySelector(`#${CSS.escape(`said-${step}`)} [data-live-text]`);
    if (!place) return false;
    keepingEnd(() => place.append(text));
    return true;
  }

  // A fragment holds the text up to its own version; what came after it is put back.
  function rewrite(fragmentVersion) {
    for (const [step, came] of pieces) {
      came.filter(({ seq }) => seq > fragmentVersion).forEach(({ text }) => write(step, text));
    }
  }

  async function fetchAgain() {
    const last = turns().at(-1);
    const whole = last?.dataset.whole ? "&whole=1" : "";
    const fresh = await load(`${address}?since=${last?.dataset.turn ?? 0}${whole}`);
    const queued = fresh?.querySelector("#queued");
    if (!queued || Number(queued.dataset.version) < Number(document.getElementById("queued").dataset.version)) return;
    keepEdits(queued);
    keepingEnd(() => {
      for (const turn of fresh.querySelectorAll(".turn")) {
        const old = document.getElementById(turn.id);
        if (old) replace(old, turn);
        else document.getElementById("queued").before(turn);
      }
      replace(document.getElementById("queued"), queued);
      rewrite(Number(queued.dataset.version));
    });
  }

  // The agent may take a message that somebody is editing: what they wrote goes on in the composer.
  function keepEdits(queued) {
    const composer = document.getElementById("composer-text");
    const edits = [...document.querySelectorAll("#queued .edit-queued[open] textarea")];
    const lost = edits.filter((field) => field.value !== field.defaultValue && !queued.querySelector(`#${CSS.escape(field.id)}`));
    if (!lost.length || !composer) return;
    composer.value = [composer.value, ...lost.map((field) => field.value)].filter(Boolean).join("\n\n");
    composer.dispatchEvent(new Event("input", { bubbles: true }));
    const words = document.createElement("p");
    words.className = "note";
    words.textContent = "The message that you were editing waits no more. What you wrote is in the box below the conversation.";
    document.getElementById("session-notice").replaceChildren(words);
  }

  const refresh = paced(fetchAgain, 350);

  function hear(event) {
    if (event.type === "model.delta") {
      const came = pieces.get(event.step_id) ?? [];
      came.push({ seq: event.seq, text: event.payload.text ?? "" });
      pieces.set(event.step_id, came);
      if (!write(event.step_id, event.payload.text ?? "")) refresh();
      return;
    }
    if (/^model\.(started|completed|failed)$/.test(event.type)) pieces.delete(event.step_id);
    if (CHANGES.test(event.type) || (event.type === "step.changed" && (event.payload.call_id || event.payload.type === "RunModel"))) refresh();
  }

  list.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.target.classList.contains("earlier")) {
      const box = scroller();
      const below = box.scrollHeight - box.scrollTop;
      list.addEventListener("htmx:afterSettle", () => { box.scrollTop = box.scrollHeight - below; }, { once: true });
    }
  });
  toEnd();
  return { hear, refresh, toEnd };
}
