// What the compiler must know of answers and frames; compiled by a test and never run.
import { State, Tickwire } from "../../../clients/typescript/dist/index.js";

const tickwire = new Tickwire({ apiKey: "any" });

const quote = await tickwire.quote("EURUSD");
quote.bid satisfies number;
// @ts-expect-error no such field
quote.mid;

(await tickwire.get("/api/session")).uptime_seconds satisfies number;
(await tickwire.get("/api/market/{symbol}", { symbol: "EURUSD" }, { bars: 3 })).ohlcv[0]?.close satisfies number | undefined;

const market = await tickwire.market("EURUSD", { timeframe: "1m", bars: 3 });
for (const candle of market.ohlcv) candle.close satisfies number;
// @ts-expect-error no such timeframe
await tickwire.market("EURUSD", { timeframe: "2h" });
// @ts-expect-error no such path
await tickwire.get("/api/nowhere", {});
// @ts-expect-error the path has a symbol
await tickwire.get("/api/market/{symbol}/quote");
// @ts-expect-error the symbol is missing
await tickwire.get("/api/market/{symbol}/quote", {});

for (const signal of (await tickwire.signals({ status: "all" })).items) {
  // @ts-expect-error only closed ones have a result
  signal.pnl;
  if (signal.status === "closed") signal.pnl satisfies number;
}
const state = await State.load("state.json");
for await (const tick of tickwire.watch(["EURUSD"], { state, fill: true, onMissed: ({ first }) => first satisfies number | null })) {
  tick.snapshot satisfies true | undefined;
  await state.save("state.json");
}
for await (const frame of tickwire.followSignals()) {
  if ("type" in frame) frame.pnl satisfies number;
  else frame.id satisfies string;
}
for await (const item of tickwire.followNews({ categories: ["gold"] })) {
  item.id satisfies number;
  item.sentiment satisfies "bullish" | "neutral" | "bearish";
}
// @ts-expect-error no such category
tickwire.followNews({ categories: ["stocks"] });
for await (const frame of tickwire.orderFlow()) {
  if ("type" in frame) frame.side satisfies "bid" | "ask";
  else frame.cumulative_delta satisfies number;
}
for await (const frame of tickwire.followCandles(["EURUSD"], { timeframes: ["1m", "1h"], events: ["forming"] })) {
  frame.candle.close satisfies number;
  frame.closed satisfies boolean;
}
// @ts-expect-error no such timeframe
tickwire.followCandles(["EURUSD"], { timeframes: ["2h"] });
for await (const candle of tickwire.history("EURUSD", "1m", { start: new Date(0), end: "2026-11-20T14:00:00Z" })) {
  candle.close satisfies number;
}
for await (const page of tickwire.history("EURUSD").pages()) page.next satisfies string | null;
// @ts-expect-error no such timeframe
tickwire.history("EURUSD", "2h");
(await tickwire.quotes(["EURUSD"])).items[0]?.age_ms satisfies number | undefined;
(await tickwire.orderFlowBuckets("EURUSD")).items[0]?.absorptions satisfies number | undefined;
