// Order flow stands under the candles: the same bars, as wide, at the same place on the screen.
import { indexAt } from "../chart/zones/shapes.js";

// Longer than any price: a chart without a format may have such a scale.
const WIDEST = 120;
// The position of a bar that is brought into view, as a part of the width.
const BESIDE = 0.25;

export class TimeAxis {
  #chart;
  #follower;
  #changed;
  #planned = false;

  /** `chart` is the pane of candles, `follower` the library's chart that goes along with it. */
  constructor(chart, follower, { changed, rezoned }) {
    this.#chart = chart;
    this.#follower = follower;
    this.#changed = changed;
    const scale = chart.chart.timeScale();
    scale.subscribeVisibleLogicalRangeChange(() => this.#plan());
    scale.subscribeSizeChange(() => this.#plan());
    follower.timeScale().subscribeSizeChange(() => this.#plan());
    chart.add({ replaced: () => this.#plan(), advanced: () => this.#plan() });
    chart.add({ rezoned: () => (this.#write(), rezoned()) });
    this.#write();
  }

  /** The one that was chosen for the candles. */
  get zone() {
    return this.#chart.scale.zone;
  }

  /** The library keeps the texts of an earlier function. */
  #write() {
    this.#follower.applyOptions({
      timeScale: { tickMarkFormatter: (time, kind) => this.zone.mark(time, kind) },
      localization: { timeFormatter: (time) => this.#chart.chart.options().localization.timeFormatter(time) },
    });
  }

  /** Opening times of the candles of this instrument, or none while they are not there. */
  times(symbol) {
    const { bars } = this.#chart;
    return this.#chart.symbol === symbol && bars?.length ? bars.map(({ time }) => time) : [];
  }

  /** Tells one list of candles from another without comparing them. */
  mark(symbol) {
    const { bars, shown } = this.#chart;
    if (this.#chart.symbol !== symbol || !bars?.length) return "";
    return `${symbol} ${shown} ${bars.length} ${bars[0].time} ${bars.at(-1).time}`;
  }

  get #range() {
    return this.#chart.chart.timeScale().getVisibleLogicalRange();
  }

  /** When the first and the last candle opened that are in sight; null if none is. */
  get seen() {
    const { bars } = this.#chart;
    if (!this.#range || !bars?.length) return null;
    const [from, to] = [Math.max(0, Math.ceil(this.#range.from)), Math.floor(this.#range.to)];
    if (from > to || from >= bars.length) return null;
    return { from: bars[from].time, to: to < bars.length - 1 ? bars[Math.max(0, to)].time : Infinity };
  }

  /** Brings a bar into view, with most of the room for what is on the other side of it. */
  bring(time, isBeginning) {
    const scale = this.#chart.chart.timeScale();
    const { from, to } = this.#range;
    const ahead = (to - from) * (isBeginning ? 1 - BESIDE : BESIDE);
    const { bars } = this.#chart;
    const behind = indexAt(bars, time) + ahead - (bars.length - 1);
    scale.scrollToPosition(Math.min(behind, scale.options().rightOffset), false);
  }

  #plan() {
    if (this.#planned) return;
    this.#planned = true;
    requestAnimationFrame(() => {
      this.#planned = false;
      this.#changed();
    });
  }

  /** Another instrument has other prices, which may be shorter. */
  restart() {
    for (const each of [this.#chart.chart, this.#follower]) each.applyOptions({ rightPriceScale: { minimumWidth: 0 } });
  }

  align() {
    this.#alignScales();
    if (this.#range) this.#follower.timeScale().setVisibleLogicalRange(this.#range);
  }

  /** Where price scales are not equally wide, bars of one time are not one above the other. */
  #alignScales() {
    const [own, other] = [this.#chart.chart, this.#follower].map((each) => each.priceScale("right").width());
    if (own === other || Math.max(own, other) > WIDEST) return;
    const minimumWidth = Math.max(own, other);
    const narrow = own < other ? this.#chart.chart : this.#follower;
    narrow.applyOptions({ rightPriceScale: { minimumWidth } });
  }
}
