// What the candle under the crosshair says, or the last one where there is no crosshair.
import { price, signed, write } from "../format.js";
import { indexAt } from "./zones/shapes.js";

const VOLUME = new Intl.NumberFormat("en-GB", { notation: "compact", maximumSignificantDigits: 4 });

const USUAL_MARGIN = 0.1;
const MOST_MARGIN = 0.4;

export class Legend {
  constructor(chart, element) {
    Object.assign(this, { chart, element, time: undefined, axis: null });
    this.cells = Object.fromEntries([...element.querySelectorAll("[data-part]")].map((cell) => [cell.dataset.part, cell]));
    chart.chart.subscribeCrosshairMove(({ time }) => this.pointed(time));
    const sizes = new ResizeObserver(() => this.leaveRoom());
    for (const each of [element, chart.element]) sizes.observe(each);
  }

  /** The candles begin below it. */
  leaveRoom() {
    const [pane] = this.chart.chart.panes();
    this.chart.headroom = this.element.offsetTop + this.element.offsetHeight + 8;
    const taken = this.chart.headroom / pane.getHeight();
    const top = Math.min(Math.max(taken, USUAL_MARGIN), MOST_MARGIN);
    this.chart.chart.priceScale("right").applyOptions({ scaleMargins: { top, bottom: 0.2 } });
  }

  pointed(time) {
    this.time = time;
    this.show();
  }

  replaced() {
    this.show();
  }

  advanced() {
    this.show();
  }

  aged() {
    this.element.classList.toggle("stale", this.chart.isStale);
  }

  show() {
    const { bars, digits } = this.chart;
    const at = this.time === undefined ? bars.length - 1 : indexAt(bars, this.time);
    const bar = bars[at];
    this.element.hidden = !bar;
    if (!bar) return;
    for (const name of ["open", "high", "low", "close"]) write(this.cells[name], price(bar[name], digits));
    const from = bars[at - 1]?.close ?? bar.open;
    const change = bar.close - from;
    write(this.cells.change, `${signed(change, digits)} (${signed(from ? (100 * change) / from : 0, 2)}%)`);
    write(this.cells.volume, VOLUME.format(bar.volume));
    this.element.dataset.direction = bar.close < bar.open ? "down" : "up";
    this.chart.tell("looked", at);
    this.fit();
  }

  /** The axis is as wide as its longest price. */
  fit() {
    const axis = this.chart.chart.priceScale("right").width();
    if (axis !== this.axis) this.element.parentElement.style.setProperty("--axis", `${(this.axis = axis)}px`);
  }
}
