// Shows a signal: in a timeframe in which there are candles of it, and with all of it in sight. Fetched when the
// user picks one.
import { SECONDS } from "../forming.js";
import { NEWEST } from "../history.js";
import { shapesOf } from "./shapes.js";

// Candles before an entry, so that one sees what it came from.
const ROOM = 20;
// All of it fits, with room on both sides.
const WIDER = 1.5;
const EVERYWHERE = { from: -Infinity, to: Infinity };

/** As soon as its candles are there. */
export function bring(signal, zones, shown, tap) {
  tap(signal.symbol, timeframeFor(signal, shown.timeframe, Date.now()));
  // Other candles need a frame: until then the library says what was in sight before them.
  zones.wanted = () => requestAnimationFrame(() => bringNow(zones, signal.id));
  zones.wanted();
}

/** The one that is shown if the newest candles reach back to the entry, otherwise the next in which they do. */
function timeframeFor({ timestamp }, shown, nowMs) {
  const ageS = (nowMs - Date.parse(timestamp)) / 1000;
  const wider = Object.keys(SECONDS).filter((timeframe) => SECONDS[timeframe] >= SECONDS[shown]);
  return wider.find((timeframe) => ageS < SECONDS[timeframe] * (NEWEST - ROOM)) ?? wider.at(-1);
}

function bringNow(zones, id) {
  const { bars, chart, isShown } = zones.chart;
  const scale = chart.timeScale();
  const range = scale.getVisibleLogicalRange();
  const signal = zones.signals.find((each) => each.id === id);
  if (!signal || !isShown || !bars.length || !range) return;
  zones.wanted = null;
  const [{ start, end }] = [...shapesOf([signal], bars, EVERYWHERE), { start: -1, end: -1 }];
  if (start < 0 || (start >= range.from && end <= range.to)) return;
  const length = Math.min(end, bars.length) - start;
  const width = Math.max(range.to - range.from, WIDER * length);
  const from = start - width / 4;
  scale.setVisibleLogicalRange({ from, to: from + width });
}
