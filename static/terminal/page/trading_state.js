// Why the chart stands still: the market is closed, or its prices stopped. Empty while they come.
import { clock, span, write } from "../format.js";
import { opening } from "./hours.js";

export class TradingState {
  /** `row` is what the watchlist knows of the instrument that is shown, `isFresh` whether its prices come. */
  constructor(element, { row, isFresh }) {
    Object.assign(this, { element, row, isFresh });
  }

  look() {
    write(this.element, tradingWords({ ...this.row(), isFresh: this.isFresh() }, Date.now()));
  }
}

// Lines end between phrases.
const whole = (phrase) => phrase.replaceAll(" ", "\u00a0");

export function tradingWords({ state, opensMs, quotedMs, isFresh }, now) {
  if (state === "closed") return ["Closed", opening(opensMs, now, "UTC")].filter(Boolean).join(", ");
  if (quotedMs === null) return "No price has arrived yet";
  if (isFresh) return "";
  return ["No new prices", `last price ${clock(quotedMs)}`, `${span(now - quotedMs)} ago`].map(whole).join(", ");
}
