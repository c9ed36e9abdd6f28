// What stands in the place of the candles while there are none: a skeleton, or words that say why.
import { Failure } from "../api.js";
import { write } from "../format.js";

const UNQUOTED = "quote_unavailable";
// A price may come by another server process than the one that is asked.
const PAUSE_MS = 2_000;

export class Placeholder {
  constructor(chart, element) {
    const part = (name) => element.querySelector(`[data-part=${name}]`);
    Object.assign(this, { chart, element, message: part("message"), again: part("again"), failure: null, askedAt: 0 });
    this.again.addEventListener("click", () => chart.reload());
  }

  asked() {
    this.failure = null;
    this.askedAt = performance.now();
    this.show();
  }

  failed(error) {
    this.failure = error;
    this.show();
  }

  replaced() {
    this.show();
  }

  advanced() {
    if (!this.element.hidden) this.show();
  }

  /** The first price has come. */
  waited() {
    if (this.state === "empty" && performance.now() - this.askedAt > PAUSE_MS) this.chart.reload();
  }

  /** Candles stay as long as they are of what was chosen, or may soon be replaced. */
  get state() {
    const { bars, shown, timeframe, isShown } = this.chart;
    if (isShown) return bars.length ? "" : "empty";
    if (bars.length && (shown === timeframe || !this.failure)) return "";
    if (!this.failure) return "loading";
    return this.failure.code === UNQUOTED ? "empty" : "failed";
  }

  show() {
    const { state, element } = this;
    element.hidden = !state;
    element.dataset.state = state;
    write(this.message, this.words(state));
  }

  words(state) {
    const { symbol } = this.chart;
    if (state === "loading") return `Loading the prices of ${symbol}…`;
    if (state === "empty") return `No prices for ${symbol} yet.`;
    if (state !== "failed") return "";
    const reason = this.failure instanceof Failure ? this.failure.message : "The service is not responding.";
    return `The prices of ${symbol} could not be loaded. ${reason}`;
  }
}
