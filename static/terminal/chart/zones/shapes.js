// Where signals stand among the candles: pure figures, in numbers of bars and prices.
import { paidFor } from "../../feed/gains.js";

const MOST = 24;
// How far the zone of an active signal reaches beyond the last candle, in bars.
const AHEAD = 5;

/** The number of the last bar that opened at a time or before; −1 before the first. */
export function indexAt(bars, time) {
  let [low, high] = [0, bars.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (bars[middle].time <= time) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

const seconds = (text) => Date.parse(text) / 1000;

/** What is in sight between two numbers of bars, the newest first. */
export function shapesOf(signals, bars, { from, to }) {
  if (!bars.length) return [];
  return signals
    .map((signal) => shapeOf(signal, bars))
    .filter(({ start, end }) => start <= to && end >= from && end >= 0)
    .sort((one, other) => other.start - one.start)
    .slice(0, MOST);
}

function shapeOf(signal, bars) {
  const { stop_loss: stop, take_profit: target, direction, status } = signal;
  const start = indexAt(bars, seconds(signal.timestamp));
  const isOver = status === "closed";
  const end = isOver ? indexAt(bars, seconds(signal.closed_at)) : bars.length - 1 + AHEAD;
  const outcome = isOver ? outcomeOf(signal.pnl_r) : "active";
  return { signal, id: signal.id, start, end, paid: paidFor(signal), stop, target, isBuy: direction === "buy", isOver, outcome, exit: signal.close_price };
}

const outcomeOf = (gain) => (gain > 0 ? "won" : gain < 0 ? "lost" : "even");
