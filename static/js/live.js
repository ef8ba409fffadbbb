// The session's stream: every event once, in order, from the number that the page was rendered at.
const SAID = {
  4401: ["out", "signed out"],
  4403: ["out", "no longer allowed"],
  4404: ["out", "this session is gone"],
};
const LONGEST = 30_000;

/**
 * Follows `path` from `after`. Calls back with `events(list, replayed)`, `reset()` when what lies
 * between is no longer kept, `state(name, words)`, and `stale()` while no connection comes about.
 */
export function follow(path, after, { events, reset, state, stale }) {
  let last = after;
  let tries = 0;
  let socket;

  const send = (message) => socket.readyState === WebSocket.OPEN && socket.send(JSON.stringify(message));
  const address = () => {
    const url = new URL(`${path}?after=${last}`, location.href);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    return url;
  };

  function take(message) {
    const fresh = message.events.filter((event) => event.seq > last).sort((a, b) => a.seq - b.seq);
    last = Math.max(last, fresh.at(-1)?.seq ?? 0, ...(message.trimmed ?? []).map(([, to]) => to));
    if (fresh.length) events(fresh, Boolean(message.replay));
    send({ type: "ack", seq: last });
  }

  const hear = {
    hello: () => {
      tries = 0;
      state("live", "live");
    },
    events: take,
    ping: () => send({ type: "pong" }),
    reset: (message) => {
      last = message.seq ?? last;
      reset(message);
    },
  };

  function connect() {
    socket = new WebSocket(address());
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(data);
      hear[message.type]?.(message);
    };
    socket.onclose = ({ code }) => {
      if (SAID[code]) {
        state(...SAID[code]);
        return;
      }
      tries += 1;
      state("lost", "reconnecting…");
      if (tries > 2) stale();
      // Random, so that the tabs of a whole team do not come back in the same second.
      setTimeout(connect, Math.min(LONGEST, 400 * 2 ** Math.min(tries, 7)) * (0.5 + Math.random()));
    };
  }

  connect();
  return { get last() { return last; } };
}
