// Candles and volume of one instrument, on an axis of time that everything else is drawn along.
import { CandlestickSeries, HistogramSeries, createChartEx } from "./charts.js";
import { persist } from "../api.js";
import { colours, frame, onThemeChange } from "../colours.js";
import { price, priceOf } from "../format.js";
import { Forming } from "./forming.js";
import { NEWEST, barOf, joined } from "./history.js";
import { ZonedScale } from "./zone.js";
import { SignalZones } from "./zones/signal_zones.js";

const BAR_PX = 7;
const RIGHT_BARS = 6;
// Far more than come while candles are asked for: what is older is in the answer.
const MOST_WAITING = 20_000;
const cross = ({ soft }) => ({ color: soft, labelBackgroundColor: soft });
const NO_PRICE = { lastValueVisible: false, priceLineVisible: false };

export class Chart {
  constructor(element, caption, { api, basis }) {
    Object.assign(this, { element, caption, api, basis, bars: [], waiting: [], parts: [], series: 0, changedFrom: Infinity, isStale: false, reach: 0, headroom: 0 });
    this.scale = new ZonedScale();
    this.chart = createChartEx(element, this.scale, {
      ...frame(colours()),
      // A finger that moves up or down scrolls the page.
      handleScroll: { vertTouchDrag: false },
    });
    this.scale.axis = this.chart.timeScale();
    // The library would take the price of the last candle in view for the last one.
    this.candles = this.chart.addSeries(CandlestickSeries, { ...NO_PRICE, borderVisible: false });
    this.volumes = this.chart.addSeries(HistogramSeries, { ...NO_PRICE, priceScaleId: "volume", priceFormat: { type: "volume" } });
    this.chart.priceScale("volume").applyOptions({ scaleMargins: { top: 0.84, bottom: 0 } });
    this.paint();
    this.zones = this.add(new SignalZones(this));
    onThemeChange(() => this.paint());
  }

  /** The chart calls these methods of a part: `paint` for new colours, `replaced` for other bars, `advanced` when the last
   * ones changed, `priced` for each price, `looked` for the bar under the pointer, `pointed` for a time under the pointer
   * of another chart, `rezoned` for another time zone, `aged` when prices become stale or fresh, `reached` when indicators
   * need other bars, `asked` for a request for candles, `failed` when it fails, and `waited` for ticks that lack candles. */
  add(part) {
    this.parts.push(part);
    return part;
  }

  tell(what, ...about) {
    for (const part of this.parts) part[what]?.(...about);
  }

  paint() {
    const tint = (this.tint = colours());
    this.chart.applyOptions(frame(tint));
    this.chart.applyOptions({
      layout: { panes: { separatorColor: tint.line, separatorHoverColor: "transparent" } },
      crosshair: { vertLine: cross(tint), horzLine: cross(tint) },
    });
    this.candles.applyOptions({ upColor: tint.up, downColor: tint.down, wickUpColor: tint.up, wickDownColor: tint.down });
    this.volumes.setData(this.bars.map((bar) => this.volumeOf(bar)));
    this.tell("paint", tint);
  }

  /** Whether the candles are those of the instrument and timeframe that were asked for. */
  get isShown() {
    return Boolean(this.forming);
  }

  /** Show an instrument in a timeframe. Live ticks that arrive before its candles are added to them. */
  async show(symbol, digits, timeframe) {
    const wanted = (this.wanted = {});
    const isWanted = () => this.wanted === wanted;
    const isOther = this.symbol !== symbol;
    Object.assign(this, { symbol, digits, timeframe, forming: null });
    if (isOther) this.clear();
    this.tell("asked");
    const market = await persist(() => this.ask(isWanted), isWanted);
    if (!market || !isWanted()) return;
    const bars = market.ohlcv.map(barOf);
    const isSame = this.shown === timeframe;
    this.bars = isSame ? joined(this.bars, bars) : bars;
    this.label((value) => price(value, digits));
    this.forming = new Forming(timeframe, this.bars.at(-1), Date.parse(market.quote.timestamp));
    this.shown = timeframe;
    this.replace();
    if (!isSame) this.chart.timeScale().applyOptions({ barSpacing: BAR_PX, rightOffset: RIGHT_BARS });
    this.hear(this.waiting.splice(0));
    this.describe();
  }

  async ask(isWanted) {
    try {
      return await this.api.get(`market/${this.symbol}`, { timeframe: this.timeframe, bars: NEWEST });
    } catch (error) {
      if (isWanted()) this.tell("failed", error);
      throw error;
    }
  }

  replace() {
    this.changedFrom = Infinity;
    this.candles.setData(this.bars);
    this.volumes.setData(this.bars.map((bar) => this.volumeOf(bar)));
    this.tell("replaced");
  }

  /** What is in view stays where it is. */
  prepend(bars) {
    this.bars = [...bars, ...this.bars];
    this.replace();
    this.describe();
  }

  /** No candle of one instrument may stand under the name of another. */
  clear() {
    this.bars = [];
    this.shown = null;
    this.caption.textContent = `${this.symbol}: waiting for candles.`;
    this.zones.signals = [];
    // Without candles the library keeps the axis of those before: it keeps its width, and says nothing.
    this.chart.priceScale("right").applyOptions({ autoScale: true, minimumWidth: this.chart.priceScale("right").width() });
    this.label(() => "");
    this.replace();
  }

  label(formatter) {
    this.candles.applyOptions({ priceFormat: { type: "custom", formatter, minMove: 10 ** -this.digits } });
  }

  /** Prices of another series begin: none of those before may stand beside them. */
  begin() {
    this.waiting = [];
    this.series += 1;
    if (!this.symbol) return;
    this.forming = null;
    this.clear();
    this.reload();
  }

  reload() {
    if (this.symbol) this.show(this.symbol, this.digits, this.timeframe);
  }

  hear(ticks) {
    const ours = ticks.filter(({ symbol }) => symbol === this.symbol);
    if (!this.forming) return this.wait(ours);
    for (const [at, tick] of ours.entries()) {
      if (this.forming.skips(tick.time)) {
        this.reload();
        return this.wait(ours.slice(at));
      }
      if (this.forming.take(tick.time, priceOf(tick, this.basis, this.digits), tick.volume)) this.take(this.forming.candle);
    }
  }

  wait(ticks) {
    if (ticks.length) this.tell("waited");
    this.waiting.push(...ticks);
    if (this.waiting.length > MOST_WAITING) this.waiting.splice(0, this.waiting.length - MOST_WAITING / 2);
  }

  /** Drawn once a frame, however many ticks come. */
  take(candle) {
    if (this.bars.at(-1) !== candle) this.bars.push(candle);
    this.changedFrom = Math.min(this.changedFrom, this.bars.length - 1);
    this.tell("priced");
    this.frame ??= requestAnimationFrame(() => this.advance());
  }

  advance() {
    const from = this.changedFrom;
    this.frame = undefined;
    this.changedFrom = Infinity;
    if (from === Infinity) return;
    for (const bar of this.bars.slice(from)) {
      this.candles.update(bar);
      this.volumes.update(this.volumeOf(bar));
    }
    this.tell("advanced", from);
  }

  volumeOf({ time, open, close, volume }) {
    return { time, value: volume, color: close < open ? this.tint.downSoft : this.tint.upSoft };
  }

  /** Whether the last price is an old one, although the market is open. */
  age(isStale) {
    if (this.isStale === isStale) return;
    this.isStale = isStale;
    this.tell("aged");
  }

  /** Of the signals of this instrument. */
  draw(signals) {
    this.zones.draw(signals);
  }

  /** For screen readers. */
  describe() {
    const last = this.bars.at(-1);
    if (!last) return;
    const low = this.bars.reduce((least, bar) => Math.min(least, bar.low), Infinity);
    const high = this.bars.reduce((most, bar) => Math.max(most, bar.high), -Infinity);
    const [from, to, now] = [low, high, last.close].map((value) => price(value, this.digits));
    this.caption.textContent = `${this.symbol}, ${this.bars.length} candles of ${this.timeframe}: between ${from} and ${to}, now ${now}.`;
  }
}
