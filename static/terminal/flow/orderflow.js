// Order flow: delta in the bars of the chart, its running sum below, absorption as marks.
import { SECONDS } from "../chart/forming.js";
import { indexAt } from "../chart/zones/shapes.js";
import { onThemeChange } from "../colours.js";
import { FlowDrawing } from "./drawing.js";
import { FlowHistory } from "./history.js";
import { FlowLegend } from "./legend.js";
import { around } from "./minutes.js";
import { TimeAxis } from "./time_axis.js";

const SHOWN = 120;
const LATE_BARS = 2;
// A shorter look at an instrument requests nothing old, because requests are limited.
const GLANCE_MS = 700;

export class OrderFlow {
  constructor(pane, chart, { api, instruments, trading }) {
    Object.assign(this, { instruments, api, pane: chart, histories: new Map() });
    this.drawing = new FlowDrawing(pane.querySelector("[data-part=canvas]"));
    this.chart = this.drawing.chart;
    this.axis = new TimeAxis(chart, this.chart, { changed: () => this.follow(), rezoned: () => this.rezone() });
    this.legend = new FlowLegend(pane, { trading, zone: () => this.axis.zone, goBack: () => this.goBack() });
    this.chart.subscribeCrosshairMove(({ time }) => this.look(time));
    this.shareCrosshair([chart.element, this.chart.chartElement()]);
    this.rezone();
    onThemeChange(() => {
      this.drawing.paint();
      if (this.history) this.draw();
    });
  }

  /** Of the candles that are shown: those of another timeframe may still be on their way. */
  get seconds() {
    return SECONDS[this.pane.shown ?? this.pane.timeframe] ?? 60;
  }

  /** Shows what is known of an instrument at once, and requests the rest. */
  show(symbol) {
    this.symbol = symbol;
    this.axis.restart();
    if (!this.histories.has(symbol)) this.histories.set(symbol, new FlowHistory(symbol, this.api, (history) => this.changed(history)));
    this.history = this.histories.get(symbol);
    this.drawing.begin(this.instruments[symbol]);
    this.legend.begin(symbol, this.instruments[symbol]);
    this.history.minutes.miss();
    this.history.refresh();
    clearTimeout(this.glance);
    this.glance = setTimeout(() => ((this.glance = null), this.reachBack()), GLANCE_MS);
    this.draw();
  }

  /** Frames were lost: loads the sums of the service. */
  miss() {
    this.history?.minutes.miss();
    this.history?.refresh();
  }

  /** Prices of another series begin: nothing earlier belongs to it. */
  begin(symbols) {
    for (const symbol of symbols) this.histories.delete(symbol);
    if (symbols.includes(this.symbol)) this.show(this.symbol);
  }

  streamIs(state) {
    this.legend.streamIs(state);
  }

  changed(history) {
    if (history !== this.history) return;
    this.reachBack();
    this.draw();
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
    this.drawing.update(bar);
    if (this.pointed === undefined) this.legend.show(bar, this.seconds);
  }

  /** The chart has moved, or has other candles. */
  follow() {
    if (!this.history) return;
    this.reachBack();
    if (this.axis.mark(this.symbol) !== this.drawn) this.draw();
    else this.place();
  }

  reachBack() {
    if (!this.glance && this.axis.seen) this.history.reachBackTo(this.axis.seen.from);
  }

  draw() {
    const bars = (this.bars = this.history.bars(this.seconds));
    this.drawn = this.axis.mark(this.symbol);
    const times = this.axis.times(this.symbol);
    const last = times.at(-1) ?? -Infinity;
    const all = [...times, ...bars.map(({ time }) => time).filter((time) => time > last)];
    this.drawnTo = all.at(-1);
    this.drawing.draw(all, bars, this.seconds);
    if (!times.length) this.chart.timeScale().setVisibleLogicalRange({ from: all.length - SHOWN, to: all.length + 5 });
    this.place();
    this.look(this.pointed);
  }

  /** All that depends on what is in sight. */
  place() {
    const { seen } = this.axis;
    if (this.axis.times(this.symbol).length) this.axis.align();
    this.drawing.mark();
    // Where only the newest candles are in sight, order flow may be about to come.
    this.gap = seen && this.bars.length ? around(this.bars, { from: seen.from - LATE_BARS * this.seconds, to: seen.to }) : null;
    const isCut = seen?.from < this.bars[0]?.time;
    this.legend.tell(this.history, this.gap, isCut ? this.bars[0].time : undefined);
    this.legend.place(this.chart);
  }

  goBack() {
    const { before, after } = this.gap;
    this.axis.bring((after ?? before).time, Boolean(after));
  }

  rezone() {
    this.drawing.rezone(this.axis.zone);
    if (this.history) this.draw();
  }

  /** The bar of a time, or the last one, in words. */
  look(time) {
    this.pointed = time;
    const bar = time === undefined ? this.bars.at(-1) : this.bars[indexAt(this.bars, time)];
    this.legend.show(bar && time !== undefined && bar.time !== time ? null : bar, this.seconds);
  }

  /** Fetched when there first is one. */
  shareCrosshair(elements) {
    const entered = new AbortController();
    const share = async () => {
      entered.abort();
      const { SharedCrosshair } = await import("../chart/crosshair.js");
      const { pane, chart, drawing } = this;
      this.crosshair = new SharedCrosshair([
        { chart: pane.chart, series: pane.candles, bars: () => pane.bars, look: (time) => pane.tell("pointed", time) },
        { chart, series: drawing.deltas, bars: () => this.bars, look: (time) => this.look(time) },
      ]);
    };
    for (const each of elements) each.addEventListener("pointerenter", share, { signal: entered.signal });
  }
}
