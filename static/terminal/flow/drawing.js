// What is drawn of order flow: delta in bars, its running sum as a line below, unusual absorption as dots.
import { HistogramSeries, LineSeries, createChartEx, createSeriesMarkers } from "../chart/charts.js";
import { ZonedScale } from "../chart/zone.js";
import { colours, frame } from "../colours.js";
import { stretchOf, unusual } from "./absorption.js";

const DAY_S = 86_400;
const QUIET = { priceLineVisible: false, lastValueVisible: false };
const ALONE = { lineVisible: false, pointMarkersVisible: true, pointMarkersRadius: 2, crosshairMarkerVisible: false, autoscaleInfoProvider: () => null };
const COMPACT = new Intl.NumberFormat("en-GB", { notation: "compact", maximumSignificantDigits: 3 });
const LEAST_MOVE = { true: 1e-8, false: 1 };
const SCALE = { tickMarkDensity: 1.75, scaleMargins: { top: 0, bottom: 0 } };
// A dot stands at zero, opposite its bar, where neither the title nor the pane's edge cuts it.
const MARK = { price: 0, shape: "circle" };
const MARK_PX = 12;
// The library makes marks larger where bars are wider, up to this.
const WIDEST_PX = 30;
// Room for the title of the scale and for a dot below zero.
const BARS = { margins: { above: 24, below: 10 } };
const LINE = { margins: { above: 24, below: 6 }, lineWidth: 2, crosshairMarkerVisible: false };
const dayOf = ({ time }) => Math.floor(time / DAY_S);

export class FlowDrawing {
  constructor(element) {
    this.scale = new ZonedScale();
    this.chart = createChartEx(element, this.scale, { ...frame(colours()), handleScroll: false, handleScale: false });
    this.scale.axis = this.chart.timeScale();
    this.chart.applyOptions({ rightPriceScale: SCALE });
    this.deltas = this.#add(HistogramSeries, 0, BARS);
    // On their own, dots would make the bars smaller.
    this.marks = createSeriesMarkers(this.deltas, [], { autoScale: false });
    this.bars = [];
    this.paint();
  }

  #add(kind, pane, { margins, ...options }) {
    const autoscaleInfoProvider = (own) => ({ priceRange: sane(own()?.priceRange), margins });
    return this.chart.addSeries(kind, { ...QUIET, ...options, priceFormat: this.format, autoscaleInfoProvider }, pane);
  }

  get format() {
    return { type: "custom", minMove: LEAST_MOVE[Boolean(this.hasTrades)], formatter: (value) => COMPACT.format(value).replace("-", "\u2212") };
  }

  /** Ticks are counted, traded volume has decimals. */
  begin({ hasTrades }) {
    this.hasTrades = hasTrades;
    for (const series of [this.deltas, this.sums]) series?.applyOptions({ priceFormat: this.format });
  }

  paint() {
    const tint = (this.tint = colours());
    const { layout, ...options } = frame(tint);
    const panes = { separatorColor: tint.line, separatorHoverColor: tint.line, enableResize: false };
    const crosshair = { color: tint.soft, labelBackgroundColor: tint.soft };
    this.chart.applyOptions({ ...options, layout: { ...layout, panes }, crosshair: { vertLine: crosshair, horzLine: crosshair } });
    for (const series of [this.sums, this.lone]) series?.applyOptions({ color: tint.accent });
  }

  /** A new zone has other days, which the library computes only for new points. */
  rezone(zone) {
    this.scale.zone = zone;
    for (const series of [this.deltas, this.sums, this.lone]) series?.setData([]);
  }

  /** `times` are those of the candles above; where nothing is known a bar stays empty. */
  draw(times, bars, seconds) {
    Object.assign(this, { bars, seconds, drawn: new Set(times) });
    this.#fold(seconds >= DAY_S);
    const known = new Map(bars.map((bar) => [bar.time, bar]));
    const points = (pointOf) => times.map((time) => (known.has(time) ? pointOf(known.get(time)) : { time }));
    this.deltas.setData(points((bar) => this.#deltaOf(bar)));
    if (this.sums) this.#drawSums(points);
    this.stretch = null;
  }

  /** The sum starts from zero each day, so for bars of whole days it equals the delta. */
  #fold(isDaily) {
    if (isDaily === !this.sums) return;
    if (isDaily) {
      for (const series of [this.sums, this.lone]) this.chart.removeSeries(series);
      this.sums = this.lone = null;
      return;
    }
    this.sums = this.#add(LineSeries, 1, { ...LINE, color: this.tint.accent });
    // Sums between two gaps, through which no line can go.
    this.lone = this.chart.addSeries(LineSeries, { ...QUIET, ...ALONE, color: this.tint.accent }, 1);
    this.chart.panes().forEach((pane, at) => pane.setStretchFactor(at ? 2 : 3));
  }

  /** The library connects all points of a line, so gaps are drawn invisibly. */
  #drawSums(points) {
    const { bars, seconds } = this;
    const ends = (at) => !bars[at + 1] || bars[at + 1].time - bars[at].time > seconds || dayOf(bars[at + 1]) !== dayOf(bars[at]);
    const last = new Set(bars.slice(0, -1).filter((_, at) => ends(at)));
    this.sums.setData(points((bar) => ({ time: bar.time, value: bar.sum, ...(last.has(bar) && { color: "transparent" }) })));
    const alone = bars.filter((bar, at) => this.drawn.has(bar.time) && ends(at) && (!at || ends(at - 1)));
    this.lone.setData(alone.map(({ time, sum: value }) => ({ time, value })));
  }

  update(bar) {
    this.bars[this.bars.length - 1] = bar;
    this.deltas.update(this.#deltaOf(bar));
    this.sums?.update({ time: bar.time, value: bar.sum });
  }

  /** When it is zoomed, a dot stands for more bars or for fewer. */
  mark() {
    const barPx = this.chart.timeScale().options().barSpacing;
    const stretch = stretchOf(barPx);
    const size = MARK_PX / Math.min(Math.max(barPx, MARK_PX), WIDEST_PX);
    if (stretch === this.stretch && size === this.size) return;
    Object.assign(this, { stretch, size });
    const marked = new Set(unusual(this.bars, this.seconds, stretch));
    // The latest is named in words below.
    marked.add(this.bars.findLast(({ absorptions }) => absorptions));
    const found = this.bars.filter((bar) => marked.has(bar) && this.drawn.has(bar.time));
    this.marks.setMarkers(found.map((bar) => ({ ...MARK, size, time: bar.time, position: bar.delta < 0 ? "atPriceTop" : "atPriceBottom", color: this.tint.warn })));
  }

  #deltaOf({ time, delta }) {
    return { time, value: delta, color: delta < 0 ? this.tint.down : this.tint.up };
  }
}

/** An axis without a span would show millionths. */
function sane(range) {
  if (!range) return { minValue: -1, maxValue: 1 };
  const { minValue, maxValue } = range;
  return minValue < maxValue ? range : { minValue: minValue - 1, maxValue: maxValue + 1 };
}
