// The average price of the day, weighted by volume. It begins again at midnight UTC, as cumulative delta does.
const DAY_S = 86_400;

export const vwap = {
  name: "vwap",
  title: "VWAP",
  settings: {},
  lines: ["average"],
  reach: (settings, seconds) => DAY_S / seconds,
  begin: () => ({ day: null, paid: 0, volume: 0 }),
  next(state, bars, at) {
    const { time, high, low, close, volume } = bars[at];
    const day = Math.floor(time / DAY_S);
    const before = day === state.day ? state : { paid: 0, volume: 0 };
    const after = { day, paid: before.paid + (volume * (high + low + close)) / 3, volume: before.volume + volume };
    return [after, { average: after.volume ? after.paid / after.volume : undefined }];
  },
};
