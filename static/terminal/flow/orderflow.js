// Who was in a hurry: delta in bars of five seconds, its running sum as a line, absorption as marks.
import { HistogramSeries, LineSeries, createChart, createSeriesMarkers } from "../chart/charts.js";
import { colours, frame, onThemeChange } from "../colours.js";
import { price, signed } from "../format.js";

const BAR_S = 5;
const KEPT = 240;

export class OrderFlow {
  constructor(element, caption, list) {
    this.caption = caption;
    this.list = list;
    this.chart = createChart(element, { ...frame(colours()), leftPriceScale: { visible: true } });
    this.bars = this.chart.addSeries(HistogramSeries, { priceLineVisible: false, lastValueVisible: false });
    this.line = this.chart.addSeries(LineSeries, { priceScaleId: "left", lineWidth: 2, priceLineVisible: false });
    this.marks = createSeriesMarkers(this.bars, []);
    this.chart.timeScale().applyOptions({ secondsVisible: true });
    this.show("", 2);
    onThemeChange(() => this.paint());
  }

  show(symbol, digits) {
    Object.assign(this, { symbol, digits, deltas: [], sums: [], absorptions: [] });
    this.list.replaceChildren();
    this.caption.textContent = symbol && `Order flow of ${symbol}: waiting for the first trades.`;
    this.paint();
  }

  /** Bars without what was missed would lie. */
  clear() {
    this.show(this.symbol, this.digits);
  }

  paint() {
    this.tint = colours();
    this.chart.applyOptions({ ...frame(this.tint), leftPriceScale: { visible: true, borderColor: this.tint.line } });
    this.line.applyOptions({ color: this.tint.accent });
    this.bars.setData(this.deltas.map((bar) => this.coloured(bar)));
    this.line.setData(this.sums);
    this.mark();
  }

  hear(frames) {
    const ours = frames.filter(({ symbol }) => symbol === this.symbol);
    const trades = ours.filter(({ type }) => !type);
    for (const frame of trades) this.add(frame);
    for (const frame of ours) if (frame.type === "absorption") this.absorb(frame);
    if (!trades.length) return;
    this.bars.update(this.coloured(this.deltas.at(-1)));
    this.line.update(this.sums.at(-1));
    const { cumulative_delta: sum } = trades.at(-1);
    this.caption.textContent = `Delta of the last ${BAR_S} s ${signed(this.deltas.at(-1).value, 2)}, since midnight UTC ${signed(sum, 2)}.`;
  }

  add({ time: ms, delta, cumulative_delta: sum }) {
    const time = Math.floor(ms / 1000 / BAR_S) * BAR_S;
    const last = this.deltas.at(-1);
    if (last && time < last.time) return;
    if (last?.time === time) {
      last.value += delta;
      this.sums.at(-1).value = sum;
      return;
    }
    if (last) this.flush();
    this.deltas.push({ time, value: delta });
    this.sums.push({ time, value: sum });
    if (this.deltas.length > 2 * KEPT) {
      this.deltas.splice(0, KEPT);
      this.sums.splice(0, KEPT);
      this.paint();
    }
  }

  /** A bar that is over is drawn before the next begins. */
  flush() {
    this.bars.update(this.coloured(this.deltas.at(-1)));
    this.line.update(this.sums.at(-1));
  }

  absorb({ time, side, price: at, volume, strength }) {
    this.absorptions.push({ time: Math.floor(time / 1000 / BAR_S) * BAR_S, side });
    if (this.absorptions.length > KEPT) this.absorptions.shift();
    this.mark();
    const item = document.createElement("li");
    const who = side === "bid" ? "Buyers absorbed selling" : "Sellers absorbed buying";
    item.textContent = `${who} of ${volume} at ${price(at, this.digits)} (strength ${strength.toFixed(1)})`;
    this.list.prepend(item);
    while (this.list.children.length > 3) this.list.lastChild.remove();
  }

  mark() {
    const first = this.deltas[0]?.time ?? Infinity;
    const marks = this.absorptions.filter(({ time }) => time >= first);
    this.marks.setMarkers(
      marks.map(({ time, side }) => ({
        time,
        position: side === "bid" ? "belowBar" : "aboveBar",
        shape: "circle",
        color: this.tint.warn,
        text: "A",
      })),
    );
  }

  coloured({ time, value }) {
    return { time, value, color: value < 0 ? this.tint.down : this.tint.up };
  }
}
