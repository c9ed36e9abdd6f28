// Holds the sockets for all tabs of this browser, so that a second tab costs the account no further streams.
import { Stream } from "./stream.js";
import { Token } from "./token.js";

const BATCH_MS = 50;
const tabs = new Map();
let token, market, flow, signals, batching;
let batch = [];

function start({ csrf }) {
  token = new Token(csrf);
  market = new Stream("/ws/market", token, { hear: queue("tick"), tell: told("market") });
  flow = new Stream("/ws/orderflow", token, { hear: queue("flow"), tell: told("flow") });
  signals = new Stream("/ws/signals", token, {
    hear: queue("signal"),
    tell: told("signals"),
    isOfAll: true,
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

function told(stream) {
  return (news) => {
    // What came before belongs before.
    if (batch.length) flush();
    broadcast({ say: "told", stream, ...news });
  };
}

function broadcast(message) {
  for (const port of tabs.keys()) port.postMessage(message);
}

function watchFlow() {
  const symbols = [...new Set([...tabs.values()].filter(Boolean))];
  if (symbols.length || flow.socket) flow.want(symbols);
}

const said = {
  hello(port, message) {
    tabs.set(port, message.flow);
    const isFirst = !token;
    if (isFirst) start(message);
    // In the order of what a small tier should spend its streams on.
    market.want(message.symbols);
    watchFlow();
    if (isFirst) signals.open();
    for (const [stream, { state }] of Object.entries({ market, flow, signals })) {
      port.postMessage({ say: "told", stream, state });
    }
  },
  flow(port, message) {
    tabs.set(port, message.flow);
    watchFlow();
  },
  async token(port) {
    try {
      port.postMessage({ say: "token", token: await token.get() });
    } catch (error) {
      port.postMessage({ say: "token", error: error.message });
    }
  },
  stale() {
    token.forget();
  },
  bye(port) {
    tabs.delete(port);
    watchFlow();
  },
};

function serve(port) {
  port.onmessage = ({ data }) => said[data.say]?.(port, data);
}

if (typeof SharedWorkerGlobalScope === "undefined") serve(self);
else self.onconnect = ({ ports }) => serve(ports[0]);
