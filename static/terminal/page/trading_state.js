// Why the chart stands still: the market is closed, or its prices stopped. Empty while they come.
import { UTC, clock, span, write } from "../format.js";
import { opening } from "./hours.js";

export class TradingState {
  /** `words` says it. `row` is what the watchlist knows of the instrument that is shown, `isFresh` whether its prices come, `zone` that of the chart. */
  constructor(element, about) {
    Object.assign(this, { element, ...about });
  }

  look() {
    write(this.element, (this.words = tradingWords({ ...this.row(), isFresh: this.isFresh() }, Date.now(), this.zone())));
  }
}

// Lines end between phrases.
const whole = (phrase) => phrase.replaceAll(" ", "\u00a0");

function tradingWords({ state, opensMs, quotedMs, isFresh }, now, zone = UTC) {
  if (state === "closed") return ["Closed", opening(opensMs, now, zone)].filter(Boolean).join(", ");
  if (quotedMs === null) return "No price has arrived yet";
  if (isFresh) return "";
  return ["No new prices", `last price ${clock(quotedMs, zone)}`, `${span(now - quotedMs)} ago`].map(whole).join(", ");
}
