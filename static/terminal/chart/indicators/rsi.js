// Wilder's relative strength index: how much of what the closes moved was upwards, 0 to 100.
import { SETTLED, START, smooth } from "./ema.js";

export const rsi = {
  name: "rsi",
  title: "RSI",
  settings: { length: 14 },
  lines: ["strength"],
  levels: [30, 70],
  digits: 2,
  hasPane: true,
  reach: ({ length }) => SETTLED * length,
  begin: () => ({ gain: START, loss: START }),
  next(state, bars, at, { length }) {
    if (at === 0) return [state, {}];
    const change = bars[at].close - bars[at - 1].close;
    const gain = smooth(state.gain, Math.max(change, 0), length, 1 / length);
    const loss = smooth(state.loss, Math.max(-change, 0), length, 1 / length);
    return [{ gain, loss }, { strength: strength(gain.value, loss.value) }];
  },
};

function strength(gain, loss) {
  if (gain === undefined) return undefined;
  return gain + loss ? (100 * gain) / (gain + loss) : 50;
}
