// Candles, volume and the levels of signals of one instrument.
import { CandlestickSeries, HistogramSeries, createChart, createSeriesMarkers } from "./charts.js";
import { persist } from "../api.js";
import { colours, frame, onThemeChange } from "../colours.js";
import { price } from "../format.js";
import { Forming, priceOf } from "./forming.js";

const BARS = 500;
const SHOWN = 120;
// Far more than come while candles are asked for: what is older is in the answer.
const MOST_WAITING = 20_000;

export class Chart {
  constructor(element, caption, { api, basis }) {
    this.api = api;
    this.basis = basis;
    this.caption = caption;
    this.waiting = [];
    this.lines = [];
    this.chart = createChart(element, frame(colours()));
    this.candles = this.chart.addSeries(CandlestickSeries, {});
    this.volumes = this.chart.addSeries(HistogramSeries, { priceScaleId: "volume", priceFormat: { type: "volume" }, lastValueVisible: false, priceLineVisible: false });
    this.chart.priceScale("volume").applyOptions({ scaleMargins: { top: 0.82, bottom: 0 } });
    this.marks = createSeriesMarkers(this.candles, []);
    this.paint();
    onThemeChange(() => this.paint());
  }

  paint() {
    const tint = (this.tint = colours());
    this.chart.applyOptions(frame(tint));
    this.candles.applyOptions({ upColor: tint.up, downColor: tint.down, wickUpColor: tint.up, wickDownColor: tint.down, borderVisible: false });
    if (this.bars) this.volumes.setData(this.bars.map((bar) => this.volumeOf(bar)));
    if (this.signals) this.draw(this.signals);
  }

  /** Show an instrument in a timeframe; what comes live meanwhile is added behind. */
  async show(symbol, digits, timeframe) {
    const wanted = (this.wanted = {});
    const isOther = this.symbol !== symbol;
    Object.assign(this, { symbol, digits, timeframe, forming: null });
    if (isOther) this.clear();
    const query = { timeframe, bars: BARS };
    const market = await persist(() => this.api.get(`market/${symbol}`, query), () => this.wanted === wanted);
    if (!market || this.wanted !== wanted) return;
    this.bars = market.ohlcv.map(({ time, ...bar }) => ({ time: Date.parse(time) / 1000, ...bar }));
    this.candles.applyOptions({ priceFormat: { type: "price", precision: digits, minMove: 10 ** -digits } });
    this.candles.setData(this.bars);
    this.volumes.setData(this.bars.map((bar) => this.volumeOf(bar)));
    this.forming = new Forming(timeframe, this.bars.at(-1) && { ...this.bars.at(-1) }, Date.parse(market.quote.timestamp));
    if (isOther || this.shown !== timeframe) this.chart.timeScale().setVisibleLogicalRange({ from: this.bars.length - SHOWN, to: this.bars.length + 5 });
    this.shown = timeframe;
    this.hear(this.waiting.splice(0));
    this.describe();
  }

  /** No candle of one instrument may stand under the name of another. */
  clear() {
    this.bars = [];
    this.candles.setData([]);
    this.volumes.setData([]);
    this.caption.textContent = `${this.symbol}: waiting for candles.`;
    this.draw([]);
  }

  /** Prices of another series begin: none of those before may stand beside them. */
  begin() {
    this.waiting = [];
    if (!this.symbol) return;
    this.clear();
    this.reload();
  }

  reload() {
    if (this.symbol) this.show(this.symbol, this.digits, this.timeframe);
  }

  hear(ticks) {
    const ours = ticks.filter(({ symbol }) => symbol === this.symbol);
    if (!this.forming) return this.wait(ours);
    let isNew = false;
    for (const [at, tick] of ours.entries()) {
      if (this.forming.skips(tick.time)) {
        this.reload();
        return this.wait(ours.slice(at));
      }
      const opened = this.forming.candle?.time;
      isNew = this.forming.take(tick.time, priceOf(tick, this.basis, this.digits), tick.volume) || isNew;
      if (opened !== undefined && this.forming.candle.time > opened) this.bars.push({ ...this.forming.candle });
    }
    if (isNew) this.update(this.forming.candle);
  }

  wait(ticks) {
    this.waiting.push(...ticks);
    if (this.waiting.length > MOST_WAITING) this.waiting.splice(0, this.waiting.length - MOST_WAITING / 2);
  }

  update(candle) {
    this.bars[Math.max(0, this.bars.length - 1)] = { ...candle };
    this.candles.update(candle);
    this.volumes.update(this.volumeOf(candle));
  }

  volumeOf({ time, open, close, volume }) {
    return { time, value: volume, color: close < open ? this.tint.downSoft : this.tint.upSoft };
  }

  /** Entry, stop and target of the active signals, and where closed ones ended. */
  draw(signals) {
    this.signals = signals;
    for (const line of this.lines.splice(0)) this.candles.removePriceLine(line);
    for (const signal of signals.filter(({ status }) => status === "active").slice(0, 3)) {
      for (const [title, level, color] of [
        [`${signal.direction} ${signal.user}`, signal.entry, this.tint.accent],
        ["stop", signal.stop_loss, this.tint.down],
        ["target", signal.take_profit, this.tint.up],
      ]) {
        this.lines.push(this.candles.createPriceLine({ price: level, color, title, lineWidth: 1, lineStyle: 2, axisLabelVisible: true }));
      }
    }
    this.mark(signals.filter(({ status }) => status === "closed"));
  }

  mark(closed) {
    const first = this.bars?.[0]?.time ?? Infinity;
    const marks = closed
      .map((signal) => ({ at: Date.parse(signal.closed_at) / 1000, signal }))
      .filter(({ at }) => at >= first)
      .sort((one, other) => one.at - other.at)
      .map(({ at, signal: { pnl } }) => ({
        time: this.bars.findLast(({ time }) => time <= at).time,
        position: "aboveBar",
        shape: pnl < 0 ? "arrowDown" : "arrowUp",
        color: pnl < 0 ? this.tint.down : this.tint.up,
        text: `${pnl > 0 ? "+" : ""}${pnl}`,
      }));
    this.marks.setMarkers(marks);
  }

  /** For those who do not see the picture. */
  describe() {
    const high = Math.max(...this.bars.map((bar) => bar.high));
    const low = Math.min(...this.bars.map((bar) => bar.low));
    const last = this.bars.at(-1);
    if (!last) return;
    const [from, to, now] = [low, high, last.close].map((value) => price(value, this.digits));
    this.caption.textContent = `${this.symbol}, ${this.bars.length} candles of ${this.timeframe}: between ${from} and ${to}, now ${now}.`;
  }
}
