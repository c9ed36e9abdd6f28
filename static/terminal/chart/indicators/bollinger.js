// Bollinger bands: standard deviations of the closes around their simple average.
import { mean } from "./sma.js";

export const bollinger = {
  name: "bollinger",
  title: "Bollinger",
  short: "BB",
  settings: { length: 20, deviations: 2 },
  limits: { deviations: { min: 0.1, max: 10, step: 0.1 } },
  lines: ["upper", "middle", "lower"],
  reach: ({ length }) => length,
  begin: () => null,
  next(state, bars, at, { length, deviations }) {
    const middle = mean(bars, at, length);
    if (middle === undefined) return [state, {}];
    let squares = 0;
    for (let each = at - length + 1; each <= at; each += 1) squares += (bars[each].close - middle) ** 2;
    // Of all that there are, as Bollinger himself has it, and not of a sample.
    const width = deviations * Math.sqrt(squares / length);
    return [state, { upper: middle + width, middle, lower: middle - width }];
  },
};
