// The simple moving average of the closes.
export const sma = {
  name: "sma",
  title: "SMA",
  settings: { length: 20 },
  lines: ["average"],
  reach: ({ length }) => length,
  begin: () => null,
  next: (state, bars, at, { length }) => [state, { average: mean(bars, at, length) }],
};

export function mean(bars, at, length) {
  if (at + 1 < length) return undefined;
  let sum = 0;
  for (let each = at - length + 1; each <= at; each += 1) sum += bars[each].close;
  return sum / length;
}
