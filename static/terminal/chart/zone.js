// The axis in a time zone of choice. What is drawn stays UTC: the zone says how times are written, and where days begin.
import { LineSeries, defaultHorzScaleBehavior } from "./charts.js";

const DAY_S = 86_400;
const MINUS = "\u2212";
// Of the widest one, 00:00 in bold.
const HALF_LABEL = 20;
const CUT = NaN;
// By the library's kinds of a mark: year, month, day, time, time with seconds.
const MARKS = [
  { year: "numeric" },
  { month: "short" },
  { day: "numeric" },
  { hour: "2-digit", minute: "2-digit" },
  { hour: "2-digit", minute: "2-digit", second: "2-digit" },
];
const PARTS = { year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric", second: "numeric" };

export class Zone {
  /** `name` as in Europe/Berlin. */
  constructor(name) {
    const format = (options) => new Intl.DateTimeFormat("en-GB", { timeZone: name, hourCycle: "h23", ...options });
    this.name = name;
    this.wall = format(PARTS);
    this.marks = MARKS.map(format);
    this.day = format({ weekday: "short", day: "numeric", month: "short", year: "numeric" });
    this.offsets = new Map();
  }

  /** How far its clocks are ahead of UTC at a time, in seconds. */
  offset(time) {
    const day = Math.floor(time / DAY_S);
    if (!this.offsets.has(day)) {
      const [begins, ends] = [day, day + 1].map((each) => this.measure(each * DAY_S));
      // Clocks change on few days: only then each time is looked at for itself.
      this.offsets.set(day, begins === ends ? begins : null);
    }
    return this.offsets.get(day) ?? this.measure(time);
  }

  measure(time) {
    const found = Object.fromEntries(this.wall.formatToParts(time * 1000).map(({ type, value }) => [type, Number(value)]));
    return Date.UTC(found.year, found.month - 1, found.day, found.hour, found.minute, found.second) / 1000 - time;
  }

  mark(time, kind) {
    return this.marks[kind].format(time * 1000);
  }

  moment(time) {
    return `${this.date(time)} ${this.mark(time, 3)}`;
  }

  date(time) {
    return this.day.format(time * 1000).replace(",", "");
  }

  /** As in UTC+5:30. */
  label(time) {
    const offset = this.offset(time);
    if (!offset) return "UTC";
    const minutes = Math.round(Math.abs(offset) / 60);
    const rest = minutes % 60 ? `:${String(minutes % 60).padStart(2, "0")}` : "";
    return `UTC${offset < 0 ? MINUS : "+"}${Math.floor(minutes / 60)}${rest}`;
  }
}

/** As in 15:59 UTC−5, on another day than today 26 Nov, 15:59 UTC−5, of a whole day 26 Nov. */
export function timeIn(zone, time, isDay = false) {
  const date = `${zone.mark(time, 2)} ${zone.mark(time, 1)}`;
  if (isDay) return date;
  const clock = `${zone.mark(time, 3)} ${zone.label(time)}`;
  return dayIn(zone, time) === dayIn(zone, Date.now() / 1000) ? clock : `${date}, ${clock}`;
}

const dayIn = (zone, time) => Math.floor((time + zone.offset(time)) / DAY_S);

const UTC = new Zone("UTC");

export class ZonedScale extends defaultHorzScaleBehavior() {
  zone = UTC;
  /** The library's time scale, once there is one. */
  axis = null;

  /** A label stands in the middle below its bar: at an edge, half of it would be cut off. */
  isCut(item) {
    const x = this.axis?.timeToCoordinate(super.cacheKey(item) / 1000) ?? null;
    return x !== null && (x < HALF_LABEL || x > this.axis.width() - HALF_LABEL);
  }

  /** What the library remembers of a label, it finds again under this: one that is cut is another one. */
  cacheKey(item) {
    return this.isCut(item) ? CUT : super.cacheKey(item);
  }

  formatTickmark(mark, localization) {
    return this.isCut(mark.time) ? "" : super.formatTickmark(mark, localization);
  }

  /** The library marks days, months and years where they begin in UTC. */
  fillWeightsForPoints(points, from) {
    const first = Math.max(0, from - 1);
    const moved = points.slice(first).map(({ originalTime }) => ({ time: this.convertHorzItemToInternal(originalTime + this.zone.offset(originalTime)), timeWeight: 0 }));
    super.fillWeightsForPoints(moved, from - first);
    for (let at = from; at < points.length; at += 1) points[at].timeWeight = moved[at - first].timeWeight;
  }
}

/** Keeps a chart in the zone that was chosen. Bars of a day are days of UTC wherever one looks from. */
export class Zoned {
  constructor(chart) {
    Object.assign(this, { chart, chosen: UTC });
    chart.chart.applyOptions({ localization: { timeFormatter: (time) => this.moment(time) } });
    this.write();
  }

  /** A new function, because the library remembers what the one before wrote. */
  write() {
    this.chart.chart.timeScale().applyOptions({ tickMarkFormatter: (time, kind) => this.zone.mark(time, kind) });
  }

  get zone() {
    return this.isDaily ? UTC : this.chosen;
  }

  get isDaily() {
    return this.chart.timeframe === "1d";
  }

  moment(time) {
    return this.isDaily ? UTC.date(time) : this.zone.moment(time);
  }

  choose(name) {
    this.chosen = new Zone(name);
    this.replaced();
  }

  replaced() {
    const { chart, scale, bars } = this.chart;
    if (scale.zone === this.zone) return;
    scale.zone = this.zone;
    this.write();
    this.chart.tell("rezoned");
    if (!bars.length) return;
    // Marks are only found again if the points change, and then from the first that did.
    const first = chart.addSeries(LineSeries, { lastValueVisible: false, priceLineVisible: false });
    first.setData([{ time: bars[0].time - 1 }]);
    chart.removeSeries(first);
  }
}
