// The exponential moving average of the closes. It begins as the simple average of the first ones.
export const ema = {
  name: "ema",
  title: "EMA",
  settings: { length: 50 },
  lines: ["average"],
  reach: ({ length }) => SETTLED * length,
  begin: () => START,
  next(state, bars, at, { length }) {
    const after = smooth(state, bars[at].close, length, 2 / (length + 1));
    return [after, { average: after.value }];
  },
};

/** The number of lengths after which its start no longer shows. */
export const SETTLED = 4;
export const START = { count: 0, sum: 0, value: undefined };

/** One value more. `weight` is that of the newest, 2 / (length + 1) or, as Wilder has it, 1 / length. */
export function smooth({ count, sum, value }, next, length, weight) {
  if (count >= length) return { count, sum, value: value + weight * (next - value) };
  const total = sum + next;
  return { count: count + 1, sum: total, value: count + 1 === length ? total / length : undefined };
}
