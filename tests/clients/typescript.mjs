// Drives the built TypeScript client for its tests: a command in, a JSON line out for each thing that came.
import { State, Tickwire } from "../../clients/typescript/dist/index.js";

const [url, apiKey, what, ...words] = process.argv.slice(2);
const tickwire = new Tickwire({ url, apiKey, retries: 0 });
const say = (value) => console.log(JSON.stringify(value));
const given = words.map((word) => (word.startsWith("{") || word.startsWith("[") ? JSON.parse(word) : word));
const onMissed = (missed) => say({ missed });

function walk() {
  const { end, ...options } = given[0];
  const asking = new Tickwire({ url, apiKey, retries: 0, ...given[1] });
  return asking.history("EURUSD", "1m", { ...options, end: end?.date ? new Date(end.date) : end });
}

const acts = {
  quote: async () => say(await tickwire.quote(words[0])),
  async signal() {
    const signal = await tickwire.signal(words[0]);
    say(signal);
    say(await tickwire.signals({ user: signal.user }));
  },
  async history() {
    for await (const candle of walk()) say(candle);
  },
  async pages() {
    for await (const page of walk().pages()) say(page);
  },
  async batches() {
    await tickwire.quotes(given[0]);
    say(await tickwire.orderFlowBuckets(given[0][0], { start: Number(words[1]), limit: 5 }));
  },
  quotes: async () => say(await tickwire.quotes(given[0])),
  get: async () => say(await tickwire.get(words[0], JSON.parse(words[1] ?? "{}"), JSON.parse(words[2] ?? "{}"))),
  async watch() {
    for await (const tick of tickwire.watch(words, { onMissed })) say(tick);
  },
  // A bot that keeps its places.
  async bot() {
    console.warn = () => {};
    const { state: path, symbols, fill, ...options } = given[0];
    const asking = new Tickwire({ url, apiKey, ...options });
    const state = await State.load(path);
    for await (const tick of asking.watch(symbols, { onMissed, fill, state })) {
      say(tick);
      await state.save(path);
    }
  },
  async gathered() {
    const asking = new Tickwire({ url, apiKey });
    say(await Promise.all(Array.from({ length: Number(words[0]) }, () => asking.get("/api/limits"))));
  },
  async candles() {
    for await (const candle of tickwire.followCandles(words, { timeframes: ["1m"], onMissed })) say(candle);
  },
  async leave() {
    const ticks = tickwire.watch(words)[Symbol.asyncIterator]();
    const waiting = ticks.next();
    await ticks.return();
    say(await waiting);
  },
  async signals() {
    for await (const signal of tickwire.followSignals([], { since: words[0], onMissed })) say(signal);
  },
  async news() {
    for await (const item of tickwire.followNews({ since: words[0], categories: ["gold"], onMissed })) say(item);
  },
};

try {
  await acts[what]();
} catch ({ name, code, message, field, requestId, cursor }) {
  say({ name, code, message, field, requestId, cursor });
}
