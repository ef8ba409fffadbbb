// The server's time, carried forward by a clock that no one can set: the client's date is not asked.
const served = document.querySelector('meta[name="server-now"]');
const base = served ? Date.parse(served.content) : Date.now();
const start = performance.now();

/** Milliseconds since the epoch, as the server counts them. */
export const serverNow = () => base + performance.now() - start;
