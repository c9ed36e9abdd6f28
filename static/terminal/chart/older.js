// Loads older candles before a user who drags the chart to the right sees its end.
import { persist } from "../api.js";
import { PAGE, barOf, barsBefore } from "./history.js";
import { SECONDS } from "./forming.js";

const AHEAD = 100;

export class Older {
  constructor(chart, strip) {
    Object.assign(this, { chart, strip, firstMs: null, of: null, isLoading: false });
    this.scale = chart.chart.timeScale();
    this.scale.subscribeVisibleLogicalRangeChange(() => this.look());
  }

  /** What is shown is of another series, or has been loaded again. */
  replaced() {
    const { symbol, timeframe, series } = this.chart;
    const of = `${symbol} ${timeframe} ${series}`;
    if (of !== this.of) Object.assign(this, { of, firstMs: null });
    this.clamp();
    this.look();
  }

  reached() {
    this.look();
  }

  get isComplete() {
    return this.firstMs !== null && !(this.chart.bars[0]?.time * 1000 > this.firstMs);
  }

  clamp() {
    this.scale.applyOptions({ fixLeftEdge: this.isComplete });
  }

  look() {
    const range = this.scale.getVisibleLogicalRange();
    if (!range || this.isLoading || this.isComplete) return;
    if (!this.chart.isShown || !this.chart.bars.length) return;
    if (range.from < Math.max(AHEAD, range.to - range.from, this.chart.reach)) this.load();
  }

  async load() {
    const { chart, of } = this;
    const { symbol, timeframe, api } = chart;
    const first = chart.bars[0].time;
    const isWanted = () => this.of === of && chart.isShown && chart.bars[0]?.time === first;
    const ask = (query) => persist(() => api.get(`market/${symbol}/history`, { timeframe, ...query }), isWanted).then(orGone);
    this.isLoading = true;
    this.strip.hidden = false;
    try {
      if (this.firstMs === null) {
        const firstMs = await firstStored(ask);
        if (!isWanted()) return;
        this.firstMs = firstMs;
      }
      const before = await barsBefore((start, end) => ask({ start, end, limit: PAGE }), 1000 * first, 1000 * SECONDS[timeframe], this.firstMs);
      if (!isWanted()) return;
      if (!before.length) this.firstMs = 1000 * first;
      chart.prepend(before);
    } catch (error) {
      if (!(error instanceof Gone)) throw error;
    } finally {
      this.isLoading = false;
      this.strip.hidden = true;
      this.look();
    }
  }
}

async function firstStored(ask) {
  const { ohlcv } = await ask({ limit: 1 });
  return ohlcv.length ? 1000 * barOf(ohlcv[0]).time : Infinity;
}

/** The answer is no longer needed. */
class Gone extends Error {}

function orGone(answer) {
  if (answer === undefined) throw new Gone();
  return answer;
}
