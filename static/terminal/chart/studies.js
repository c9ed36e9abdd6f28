// Draws the indicators that are switched on: over the candles, or in a pane of their own below them.
import { HistogramSeries, LineSeries, PriceScaleMode } from "./charts.js";
import { price, write } from "../format.js";
import { SECONDS } from "./forming.js";
import { INDICATORS } from "./indicators/index.js";
import { Running } from "./indicators/running.js";

const COLOURS = { average: "plot-1", upper: "plot-3", middle: "plot-3", lower: "plot-3", strength: "plot-5", macd: "plot-1", signal: "plot-2" };
const OWN_COLOURS = { ema: "plot-2", vwap: "plot-4" };
const CANDLES_SHARE = 3;
const DASHED = 2;
const MOST_TAKEN = 0.5;
const EDGE_PX = 8;
const MINUS = "\u2212";

export class Studies {
  constructor(chart, { over, below, row }) {
    Object.assign(this, { chart, over, below, row, shown: new Map() });
    // The library has no event for where a pane begins, but its size changes with that.
    this.sizes = new ResizeObserver(() => this.place());
    this.sizes.observe(chart.element);
  }

  /** Switch one on, or on with other settings. */
  show(indicator, settings) {
    this.hide(indicator);
    this.shown.set(indicator.name, new Study(this.chart, indicator, settings, this.row.content.cloneNode(true).firstElementChild));
    this.order();
    this.arrange();
    this.reach();
    this.chart.tell("reached");
  }

  /** As in the menu, whichever was switched on first. */
  inOrder() {
    return INDICATORS.filter(({ name }) => this.shown.has(name)).map(({ name }) => this.shown.get(name));
  }

  order() {
    let pane = 0;
    for (const { row, indicator, series } of this.inOrder()) {
      (indicator.hasPane ? this.below : this.over).append(row);
      if (indicator.hasPane) series[0].getPane().moveTo((pane += 1));
    }
  }

  /** How many bars are needed before those in sight. */
  reach() {
    this.chart.reach = Math.max(0, ...this.inOrder().map((study) => study.reach));
  }

  hide({ name }) {
    this.shown.get(name)?.remove();
    this.shown.delete(name);
    this.arrange();
    this.reach();
  }

  paint() {
    for (const study of this.shown.values()) study.paint();
  }

  replaced() {
    for (const study of this.shown.values()) study.draw();
    this.reach();
  }

  advanced(from) {
    for (const study of this.shown.values()) study.advance(from);
  }

  looked(at) {
    for (const study of this.shown.values()) study.tell(at);
  }

  arrange() {
    const panes = this.chart.chart.panes();
    panes.forEach((pane, at) => pane.setStretchFactor(at ? 1 : CANDLES_SHARE));
    this.chart.element.dataset.panes = panes.length;
    requestAnimationFrame(() => this.place());
  }

  /** The figures of a pane stand at its top, and its lines begin below them. */
  place() {
    const top = this.below.getBoundingClientRect().top;
    for (const { row, series, indicator } of this.shown.values()) {
      const pane = indicator.hasPane && series[0].getPane().getHTMLElement();
      if (!pane) continue;
      this.sizes.observe(pane);
      const box = pane.getBoundingClientRect();
      row.style.setProperty("top", `${box.top - top}px`);
      if (box.height) series[0].priceScale().applyOptions({ scaleMargins: { top: Math.min(MOST_TAKEN, (row.offsetHeight + EDGE_PX) / box.height), bottom: EDGE_PX / box.height } });
    }
  }
}

class Study {
  constructor(chart, indicator, settings, row) {
    const title = [indicator.short ?? indicator.title, ...Object.values(settings)].join(" ");
    Object.assign(this, { chart, indicator, settings, row, title, running: new Running(indicator, settings) });
    const pane = indicator.hasPane ? chart.chart.panes().length : 0;
    this.series = indicator.lines.map((line) => chart.chart.addSeries(this.kind(line), {}, pane));
    // A pane begins with the scale of the candles, which may be logarithmic.
    if (pane) this.series[0].priceScale().applyOptions({ mode: PriceScaleMode.Normal });
    this.levels = (indicator.levels ?? []).map((level) => this.series[0].createPriceLine({ price: level, lineWidth: 1, lineStyle: DASHED, axisLabelVisible: false }));
    const main = this.series[indicator.lines.indexOf(this.mainLine)];
    if (pane) this.pinned = main.createPriceLine({ price: 0, lineVisible: false, axisLabelVisible: false });
    row.querySelector("[data-part=name]").textContent = title;
    this.cells = indicator.lines.map(() => row.appendChild(document.createElement("b")));
    this.paint();
    this.draw();
  }

  get reach() {
    return this.indicator.reach(this.settings, SECONDS[this.chart.timeframe] ?? Infinity);
  }

  kind(line) {
    return line === this.indicator.histogram ? HistogramSeries : LineSeries;
  }

  colour(line) {
    return this.chart.tint[this.colourName(line)];
  }

  /** The line that it is named for. */
  get mainLine() {
    const { lines, histogram } = this.indicator;
    return lines.find((line) => line !== histogram);
  }

  get mainColour() {
    return this.colour(this.mainLine);
  }

  /** The value of now on the axis of its pane, which is too low for the tags of several lines. The library's own tag is
   * that of the last bar in sight. */
  pin() {
    if (!this.indicator.hasPane) return;
    const value = this.running.values.at(-1)?.[this.mainLine];
    this.pinned.applyOptions({ price: value ?? 0, axisLabelVisible: value !== undefined, color: this.mainColour });
  }

  paint() {
    const { lines, levels } = this.indicator;
    lines.forEach((line, at) => {
      this.series[at].applyOptions({
        color: this.colour(line),
        lineWidth: 1,
        lineStyle: line === "middle" ? DASHED : 0,
        priceLineVisible: false,
        lastValueVisible: false,
        crosshairMarkerVisible: false,
        priceFormat: { type: "custom", formatter: (value) => this.written(value), minMove: 10 ** -this.digits },
        ...(levels && { autoscaleInfoProvider: () => ({ priceRange: { minValue: 0, maxValue: 100 } }) }),
      });
      this.cells[at].dataset.colour = this.colourName(line);
    });
    for (const level of this.levels) level.applyOptions({ color: this.chart.tint.line });
    this.pin();
  }

  colourName(line) {
    return OWN_COLOURS[this.indicator.name] ?? COLOURS[line] ?? "soft";
  }

  get digits() {
    const { digits = 2 } = this.chart;
    return this.indicator.digits ?? digits + (this.indicator.hasPane ? 1 : 0);
  }

  written(value) {
    if (this.indicator.levels && (value < 0 || value > 100)) return "";
    // A little below zero is not written as a negative zero.
    const isZero = Math.abs(value) < 0.5 * 10 ** -this.digits;
    return price(isZero ? 0 : value, this.digits).replace("-", MINUS);
  }

  draw() {
    const { bars } = this.chart;
    this.running.values.length = 0;
    const values = this.running.along(bars);
    this.indicator.lines.forEach((line, at) => {
      const points = [];
      for (let each = 0; each < bars.length; each += 1) if (values[each][line] !== undefined) points.push(this.point(line, each));
      this.series[at].setData(points);
    });
    this.tell(bars.length - 1);
    this.pin();
  }

  advance(from) {
    const { bars } = this.chart;
    const values = this.running.along(bars, from);
    for (let each = from; each < bars.length; each += 1) {
      this.indicator.lines.forEach((line, at) => {
        if (values[each][line] !== undefined) this.series[at].update(this.point(line, each));
      });
    }
    this.pin();
  }

  point(line, at) {
    const value = this.running.values[at][line];
    const point = { time: this.chart.bars[at].time, value };
    if (line === this.indicator.histogram) point.color = value < 0 ? this.chart.tint.downSoft : this.chart.tint.upSoft;
    return point;
  }

  tell(at) {
    const values = this.running.values[at] ?? {};
    this.indicator.lines.forEach((line, each) => {
      write(this.cells[each], values[line] === undefined ? "–" : this.written(values[line]));
    });
  }

  remove() {
    for (const series of this.series) this.chart.chart.removeSeries(series);
    this.row.remove();
  }
}
