// How far a fast average of the closes is above a slow one, the average of that, and the difference.
import { SETTLED, START, smooth } from "./ema.js";

const weight = (length) => 2 / (length + 1);

export const macd = {
  name: "macd",
  title: "MACD",
  settings: { fast: 12, slow: 26, signal: 9 },
  lines: ["difference", "macd", "signal"],
  histogram: "difference",
  hasPane: true,
  reach: ({ slow, signal }) => SETTLED * (slow + signal),
  begin: () => ({ fast: START, slow: START, signal: START }),
  next(state, bars, at, { fast: fastLength, slow: slowLength, signal: signalLength }) {
    const { close } = bars[at];
    const fast = smooth(state.fast, close, fastLength, weight(fastLength));
    const slow = smooth(state.slow, close, slowLength, weight(slowLength));
    if (fast.value === undefined || slow.value === undefined) return [{ fast, slow, signal: START }, {}];
    const line = fast.value - slow.value;
    const signal = smooth(state.signal, line, signalLength, weight(signalLength));
    const difference = signal.value === undefined ? undefined : line - signal.value;
    return [{ fast, slow, signal }, { difference, macd: line, signal: signal.value }];
  },
};
