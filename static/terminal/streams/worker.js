// Holds the sockets for all tabs of this browser, so that a second tab costs the account no further streams.
import { Stream } from "./stream.js";
import { Token } from "./token.js";

const BATCH_MS = 50;
const tabs = new Map();
let token, market, flow, signals, batching;
let batch = [];

function start(csrf) {
  token = new Token(csrf);
  market = new Stream("/ws/market", token, { hear: queue("tick"), tell: reportOn("market") });
  flow = new Stream("/ws/orderflow", token, { hear: queue("flow"), tell: reportOn("flow") });
  signals = new Stream("/ws/signals", token, {
    hear: queue("signal"),
    tell: reportOn("signals"),
    isOfAll: true,
    // Where a tier allows two streams, prices and order flow have them; pages poll signals then.
    mayOpen: () => [market, flow].every(({ state }) => state.status === "live"),
    more: { events: ["signal.closed"] },
  });
}

function queue(kind) {
  return (frame) => {
    batch.push([kind, frame]);
    batching ??= setTimeout(flush, BATCH_MS);
  };
}

function flush() {
  const frames = batch;
  batch = [];
  batching = undefined;
  broadcast({ say: "frames", frames });
}

function reportOn(stream) {
  return (news) => {
    // Keeps the order of arrival.
    if (batch.length) flush();
    broadcast({ say: "streamReport", stream, ...news });
    if (!signals.socket) signals.open();
  };
}

function broadcast(message) {
  for (const port of tabs.keys()) port.postMessage(message);
}

/** Subscribes to what any tab shows. */
function want() {
  const shown = [...tabs.values()];
  // With the last tab the worker goes too, unless the tab may be restored.
  if (!shown.length) return;
  market.want([...new Set(shown.flatMap(({ symbols }) => symbols))]);
  flow.want([...new Set(shown.map(({ flow: symbol }) => symbol).filter(Boolean))]);
}

const handlers = {
  hello(port, { csrf, symbols, flow: symbol }) {
    tabs.set(port, { symbols, flow: symbol });
    if (!token) start(csrf);
    token.useCsrf(csrf);
    want();
    for (const [name, stream] of Object.entries({ market, flow, signals })) {
      // After a login or logout, the page is served again.
      if (stream.state.status === "refused") stream.open();
      port.postMessage({ say: "streamReport", stream: name, state: stream.state });
    }
  },
  flow(port, { flow: symbol }) {
    tabs.set(port, { ...tabs.get(port), flow: symbol });
    want();
  },
  async token(port) {
    try {
      port.postMessage({ say: "token", token: await token.get() });
    } catch ({ message, retryAfterS }) {
      port.postMessage({ say: "token", error: message, retryAfterS });
    }
  },
  stale() {
    token.forget();
  },
  bye(port) {
    tabs.delete(port);
    want();
  },
};

function serve(port) {
  port.onmessage = ({ data }) => handlers[data.say]?.(port, data);
}

if (typeof SharedWorkerGlobalScope === "undefined") serve(self);
else self.onconnect = ({ ports }) => serve(ports[0]);
