// Drives the built TypeScript client for its tests: a command in, a JSON line out for each thing that came.
import { Tickwire } from "../../clients/typescript/dist/index.js";

const [url, apiKey, what, ...words] = process.argv.slice(2);
const tickwire = new Tickwire({ url, apiKey, retries: 0 });
const say = (value) => console.log(JSON.stringify(value));
const onMissed = (missed) => say({ missed });

const acts = {
  quote: async () => say(await tickwire.quote(words[0])),
  async signal() {
    const signal = await tickwire.signal(words[0]);
    say(signal);
    say(await tickwire.signals({ user: signal.user }));
  },
  get: async () => say(await tickwire.get(words[0], JSON.parse(words[1] ?? "{}"), JSON.parse(words[2] ?? "{}"))),
  async watch() {
    for await (const tick of tickwire.watch(words, { onMissed })) say(tick);
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
} catch ({ name, code, message, refusal }) {
  say({ name, code, message, field: refusal?.field });
}
