// The stored candles before those that are shown, a window at a time: /history itself runs from old to new.
export const PAGE = 1_000;
// As many of the newest candles are loaded at first.
export const NEWEST = 500;

export const barOf = ({ time, ...bar }) => ({ time: Date.parse(time) / 1000, ...bar });

/** The nearest bars before a moment, none once there are none. `ask(start, end)` answers one page of /history. */
export async function barsBefore(ask, beforeMs, intervalMs, firstMs) {
  let end = beforeMs;
  for (let span = PAGE * intervalMs; end > firstMs; span *= 2) {
    const start = Math.max(firstMs, end - span);
    const bars = await allBetween(ask, start, end);
    if (bars.length) return bars;
    // A weekend, or a gap of the source.
    end = start;
  }
  return [];
}

/** Pages of the website may not follow cursors, so each request begins after the last bar. */
async function allBetween(ask, start, end) {
  const bars = [];
  for (;;) {
    const { ohlcv, next } = await ask(start, end);
    bars.push(...ohlcv.map(barOf));
    if (next === null) return bars;
    start = Date.parse(ohlcv.at(-1).time) + 1;
  }
}

/** What was shown goes on standing before what is known now, unless something between them is missing. */
export function joined(before, now) {
  const first = now[0]?.time;
  if (first === undefined) return before;
  return before.at(-1)?.time >= first ? [...before.filter(({ time }) => time < first), ...now] : now;
}
