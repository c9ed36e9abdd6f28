// Order flow stands under the candles: the same bars, as wide, at the same place on the screen.

// No price is so long: while a chart has no format yet, its scale may be.
const WIDEST = 120;

export class TimeAxis {
  #chart;
  #follower;
  #changed;
  #planned = false;

  /** `chart` is the pane of candles, `follower` the library's chart that goes along with it. */
  constructor(chart, follower, changed) {
    this.#chart = chart;
    this.#follower = follower;
    this.#changed = changed;
    const scale = chart.chart.timeScale();
    scale.subscribeVisibleLogicalRangeChange(() => this.#plan());
    scale.subscribeSizeChange(() => this.#plan());
    follower.timeScale().subscribeSizeChange(() => this.#plan());
    chart.add({ replaced: () => this.#plan(), advanced: () => this.#plan() });
    chart.add({ rezoned: () => this.#write() });
    this.#write();
  }

  /** Times stand in the zone that was chosen for the candles. The library remembers what a function wrote before. */
  #write() {
    const { scale } = this.#chart;
    this.#follower.applyOptions({
      timeScale: { tickMarkFormatter: (time, kind) => scale.zone.mark(time, kind) },
      localization: { timeFormatter: (time) => scale.zone.moment(time) },
    });
  }

  /** Opening times of the candles of this instrument, or none while they are not there. */
  times(symbol) {
    const { bars } = this.#chart;
    return this.#chart.symbol === symbol && bars?.length ? bars.map(({ time }) => time) : [];
  }

  /** Tells one list of candles from another without comparing them. */
  mark(symbol) {
    const { bars, timeframe } = this.#chart;
    if (this.#chart.symbol !== symbol || !bars?.length) return "";
    return `${symbol} ${timeframe} ${bars.length} ${bars[0].time} ${bars.at(-1).time}`;
  }

  /** When the first candle that is in sight opened. */
  get seenFrom() {
    const range = this.#chart.chart.timeScale().getVisibleLogicalRange();
    return range && this.#chart.bars?.[Math.max(0, Math.floor(range.from))]?.time;
  }

  #plan() {
    if (this.#planned) return;
    this.#planned = true;
    requestAnimationFrame(() => {
      this.#planned = false;
      this.#changed();
      this.align();
    });
  }

  /** Another instrument has other prices, which may be shorter. */
  restart() {
    for (const each of [this.#chart.chart, this.#follower]) each.applyOptions({ rightPriceScale: { minimumWidth: 0 } });
  }

  align() {
    this.#alignScales();
    const range = this.#chart.chart.timeScale().getVisibleLogicalRange();
    if (range) this.#follower.timeScale().setVisibleLogicalRange(range);
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
