// Who was in a hurry: delta in the bars of the chart, its running sum below, absorption as marks.
import { HistogramSeries, LineSeries, createChart, createSeriesMarkers } from "../chart/charts.js";
import { colours, frame, onThemeChange } from "../colours.js";
import { FlowHistory } from "./history.js";
import { FlowLegend } from "./legend.js";
import { TimeAxis } from "./time_axis.js";

const SECONDS = { "1m": 60, "5m": 300, "15m": 900, "1h": 3600, "4h": 14_400, "1d": 86_400 };
const SHOWN = 120;
const MARKED_S = 900;
const COMPACT = new Intl.NumberFormat("en-GB", { notation: "compact", maximumSignificantDigits: 3 });
const QUIET = { priceLineVisible: false, lastValueVisible: false };
const FORMAT = { type: "custom", minMove: 1e-8, formatter: (value) => COMPACT.format(value).replace("-", "\u2212") };

export class OrderFlow {
  constructor(pane, chart, { api, instruments }) {
    Object.assign(this, { instruments, pane: chart });
    this.histories = new Map();
    this.api = api;
    this.legend = new FlowLegend(pane);
    this.chart = createChart(pane.querySelector("[data-part=canvas]"), { ...frame(colours()), handleScroll: false, handleScale: false });
    this.deltas = this.chart.addSeries(HistogramSeries, { ...QUIET, priceFormat: FORMAT });
    this.sums = this.chart.addSeries(LineSeries, { ...QUIET, priceFormat: FORMAT, lineWidth: 2, crosshairMarkerVisible: false }, 1);
    this.marks = createSeriesMarkers(this.deltas, []);
    this.axis = new TimeAxis(chart, this.chart, () => this.follow());
    this.chart.subscribeCrosshairMove(({ time }) => this.point(time));
    const [upper, lower] = this.chart.panes();
    upper.setStretchFactor(3);
    lower.setStretchFactor(2);
    // The titles of the scales stand above what is drawn.
    this.deltas.priceScale().applyOptions({ scaleMargins: { top: 0.25, bottom: 0.06 } });
    this.sums.priceScale().applyOptions({ scaleMargins: { top: 0.4, bottom: 0.1 } });
    this.paint();
    onThemeChange(() => this.paint());
  }

  get seconds() {
    return SECONDS[this.pane.timeframe] ?? 60;
  }

  /** What is known of an instrument is there at once; what came since is asked for. */
  show(symbol) {
    this.symbol = symbol;
    this.axis.restart();
    if (!this.histories.has(symbol)) this.histories.set(symbol, new FlowHistory(symbol, this.api, (history) => this.changed(history)));
    this.history = this.histories.get(symbol);
    this.legend.begin(symbol, this.instruments[symbol]);
    this.history.minutes.miss();
    this.history.refresh();
    this.draw();
  }

  /** Frames were lost: the service has summed them up. */
  miss() {
    this.history?.minutes.miss();
    this.history?.refresh();
  }

  /** Prices of another series begin: nothing of before belongs to it. */
  begin(symbols) {
    for (const symbol of symbols) this.histories.delete(symbol);
    if (symbols.includes(this.symbol)) this.show(this.symbol);
  }

  streamIs(state) {
    this.legend.streamIs(state);
  }

  price(ticks) {
    this.legend.price(ticks);
  }

  changed(history) {
    if (history === this.history) this.draw();
  }

  hear(frames) {
    let isNew = false;
    for (const frame of frames) {
      const minutes = this.histories.get(frame.symbol)?.minutes;
      if (frame.symbol !== this.symbol || !minutes) continue;
      if (frame.type === "absorption") {
        minutes.absorb(frame.time);
        this.legend.absorb(frame);
        isNew = "marks";
      } else isNew = minutes.take(frame) || isNew;
    }
    if (isNew) this.update(isNew === "marks");
  }

  /** One bar, where nothing else has changed. */
  update(isMarked) {
    const bar = this.history.minutes.lastBar(this.seconds);
    if (isMarked || !bar || bar.time !== this.bars?.at(-1)?.time || bar.time < this.drawnTo) return this.draw();
    this.bars[this.bars.length - 1] = bar;
    this.deltas.update(this.deltaOf(bar));
    this.sums.update({ time: bar.time, value: bar.sum });
    this.legend.show(bar, this.seconds);
  }

  /** The chart has moved, or has other candles. */
  follow() {
    if (this.axis.mark(this.symbol) !== this.drawn) this.draw();
    this.history?.reachBackTo(this.axis.seenFrom);
  }

  draw() {
    const bars = (this.bars = this.history.minutes.bars(this.seconds));
    this.drawn = this.axis.mark(this.symbol);
    const known = new Map(bars.map((bar) => [bar.time, bar]));
    const times = this.axis.times(this.symbol);
    const last = times.at(-1) ?? -Infinity;
    const all = [...times, ...bars.map(({ time }) => time).filter((time) => time > last)];
    this.drawnTo = all.at(-1);
    this.deltas.setData(all.map((time) => (known.has(time) ? this.deltaOf(known.get(time)) : { time })));
    this.sums.setData(all.map((time) => (known.has(time) ? { time, value: known.get(time).sum } : { time })));
    this.mark(new Set(all));
    if (times.length) this.axis.align();
    else this.chart.timeScale().setVisibleLogicalRange({ from: all.length - SHOWN, to: all.length + 5 });
    this.legend.show(bars.at(-1), this.seconds);
    this.legend.tell(this.history);
    this.legend.place(this.chart.panes()[0].getHeight());
  }

  mark(drawn) {
    // Of an hour nearly every bar has one: there they would say nothing.
    const found = this.seconds > MARKED_S ? [] : this.bars.filter(({ time, absorptions }) => absorptions && drawn.has(time));
    this.marks.setMarkers(found.map(({ time, delta }) => ({ time, position: delta < 0 ? "belowBar" : "aboveBar", shape: "circle", size: 0.6, color: this.tint.warn })));
  }

  paint() {
    this.tint = colours();
    const separators = { separatorColor: this.tint.line, separatorHoverColor: this.tint.line, enableResize: false };
    const options = frame(this.tint);
    this.chart.applyOptions({ ...options, layout: { ...options.layout, panes: separators } });
    this.sums.applyOptions({ color: this.tint.accent });
    if (this.history) this.draw();
  }

  point(time) {
    const bar = time === undefined ? this.bars?.at(-1) : this.bars?.find((each) => each.time === time);
    this.legend.show(bar, this.seconds);
  }

  deltaOf({ time, delta }) {
    return { time, value: delta, color: delta < 0 ? this.tint.down : this.tint.up };
  }
}
