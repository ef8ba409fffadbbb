// The page of one session: follows its stream and tells each part of the page what happened.
import { atWork } from "./at-work.js";
import { ended, stopDialog } from "./composer.js";
import { conversation } from "./conversation.js";
import { eventsView } from "./events-view.js";
import { load, paced, replace } from "./fragments.js";
import { graphView } from "./graph-view.js";
import { grip } from "./grip.js";
import { follow } from "./live.js";
import { sidePanel } from "./side-panel.js";
import { tabs } from "./tabs.js";

const page = document.getElementById("session");
const address = page.dataset.page;
page.classList.add("scripted");

const talk = conversation(`${address}conversation/`);
const events = eventsView();
const graph = graphView({ select: (step) => go(step) });
const side = sidePanel({
  steps: (step) => `${address}steps/${encodeURIComponent(step)}/`,
  chosen: (step, byHand, kept) => graph.choose(step, byHand, kept),
});
const live = document.getElementById("live");
const views = tabs(address, { shown: () => {
  graph.shown();
  events.show(location.hash);
  talk.toEnd();
} });
stopDialog();
grip(document.getElementById("grip"), document.getElementById("work"));

const head = paced(async () => {
  const old = document.getElementById("session-head");
  const fresh = await load(`${old.dataset.url}?tab=${views.current()}`);
  const next = replace(old, fresh?.querySelector("#session-head"));
  title(next);
  // What was said of a turn is no news any more once it is over.
  if (!next.hasAttribute("data-turn-runs")) document.querySelector("#session-notice [data-while-turn]")?.remove();
  children();
  if (live.dataset.state === "live") state("live", "live");
}, 500);

const children = atWork(() => {
  head();
  side.refresh();
});

const plain = document.title.replace(/^◆ /, "");
function title(next) {
  document.title = next.dataset.hue === "act" ? `◆ ${plain}` : plain;
}

const later = paced(() => views.refresh(), 3000);

function everything() {
  head();
  talk.refresh();
  graph.refresh();
  events.refresh();
  side.refresh();
  if (["timeline", "state"].includes(views.current())) later();
}

async function closed() {
  const fresh = await load(`${address}?fragment=composer`).catch(() => null);
  ended(fresh?.querySelector("#composer"));
}

const say = (words) => { document.getElementById("announce").textContent = words; };
const ANNOUNCED = {
  "approval.requested": (payload) => `${payload.tool} waits for approval`,
  "session.closed": (payload) => `The session has ended: ${payload.status}`,
};

function hear(list, replayed) {
  for (const event of list) {
    talk.hear(event);
    graph.hear(event);
    events.hear(event);
    side.hear(event);
    if (!replayed && ANNOUNCED[event.type]) say(ANNOUNCED[event.type](event.payload));
    if (event.type === "session.closed") closed();
  }
  if (list.some(({ type }) => type !== "model.delta")) {
    head();
    if (["timeline", "state"].includes(views.current())) later();
  }
}

function state(name, words) {
  const over = name === "live" && document.querySelector("#session-head .ended");
  live.dataset.state = over ? "over" : name;
  const place = document.getElementById("live-words");
  place.textContent = over ? "ended" : words;
  if (words === "signed out") {
    const again = document.createElement("a");
    again.href = `${document.body.dataset.root}accounts/login/?next=${encodeURIComponent(location.pathname + location.search)}`;
    again.textContent = "sign in again";
    place.append(" – ", again);
  }
}

follow(page.dataset.socket, Number(page.dataset.seq), {
  events: hear,
  reset: everything,
  state,
  stale: paced(everything, 10_000),
});
document.addEventListener("session:signed-out", () => state("out", "signed out"));
document.addEventListener("session:changed", ({ detail }) => {
  if (detail?.form === "edit") for (const open of document.querySelectorAll(".edit-queued[open]")) open.open = false;
  everything();
});

/** Selects a Step by hand: it has an address of its own. */
function go(step) {
  if (location.hash !== `#step-${step}`) history.pushState(history.state, "", `#step-${step}`);
  side.show(step, { hand: true });
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-step-link]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  go(link.dataset.stepLink);
});

function follows(hash) {
  const step = /^#step-(.+)$/.exec(hash)?.[1];
  if (step) side.show(decodeURIComponent(step), { open: true });
  else side.close();
  if (/^#event-\d+$/.test(hash)) views.open("events").then(() => events.show(hash));
}
addEventListener("hashchange", () => follows(location.hash));
graph.shown();
graph.choose(document.getElementById("side-body").dataset.step, false);
follows(location.hash);
title(document.getElementById("session-head"));
children();
