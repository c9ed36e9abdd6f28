// The last price in the title of the tab, also while another tab is in front.
import { price } from "../format.js";

const EVERY_MS = 500;

export class Title {
  constructor(chart) {
    Object.assign(this, { chart, name: document.title, timer: null });
  }

  replaced() {
    this.write();
  }

  aged() {
    this.write();
  }

  priced() {
    this.timer ??= setTimeout(() => this.write(), EVERY_MS);
  }

  write() {
    const { bars, symbol, digits, isStale } = this.chart;
    clearTimeout(this.timer);
    this.timer = null;
    const last = bars.at(-1);
    const title = [isStale && "⚠ Stale", last ? `${price(last.close, digits)} ${symbol}` : symbol, this.name].filter(Boolean).join(" · ");
    if (document.title !== title) document.title = title;
  }
}
