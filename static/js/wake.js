// A socket used as a wake-up: it says that something changed, the page then asks what.
// Reconnects with random back-off, so that many tabs do not come back at once.
const FINAL = new Set([4401, 4403, 4404]);

/**
 * Opens `path` and calls `heard(message)` for each JSON message, `opened(again)` on every connection.
 * Answers with a function that closes it for good.
 */
export function wake(path, { heard, opened = () => {}, lost = () => {} }) {
  const url = new URL(path, location.href);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  let socket;
  let timer;
  let tries = 0;
  let before = false;
  let closed = false;

  const connect = () => {
    socket = new WebSocket(url);
    socket.onopen = () => {
      tries = 0;
      opened(before);
      before = true;
    };
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(data);
      if (message.type === "ping") socket.send(JSON.stringify({ type: "pong" }));
      const last = message.events?.at(-1)?.seq;
      if (last) socket.send(JSON.stringify({ type: "ack", seq: last }));
      heard(message);
    };
    socket.onclose = ({ code }) => {
      if (closed) return;
      lost(code);
      if (FINAL.has(code)) return;
      tries += 1;
      timer = setTimeout(connect, Math.min(30_000, 500 * 2 ** tries) * (0.5 + Math.random()));
    };
  };
  connect();
  return () => {
    closed = true;
    clearTimeout(timer);
    socket.close();
  };
}
