// When no prices come at all: they dim, and the page says how old the last one is.
import { clock, span, write } from "../format.js";

// A connection that comes back within this time has lost nothing visible.
const GRACE_MS = 2_500;
const FIRST_GRACE_MS = 6_000;
export const CAUSES = {
  silent: "The service is not responding.",
  stale: "The service is not receiving any prices.",
  refused: "The service refused the connection.",
  reconnecting: "Reconnecting…",
  connecting: "Connecting…",
};

export class Outage {
  constructor(banner, announce, panes) {
    const part = (name) => banner.querySelector(`[data-part=${name}]`);
    Object.assign(this, { banner, panes, age: part("age"), cause: part("cause"), announce });
    this.lastMs = 0;
    this.lostAt = performance.now();
    this.grace = FIRST_GRACE_MS;
  }

  hear(ticks) {
    for (const { time } of ticks) if (time > this.lastMs) this.lastMs = time;
  }

  get isOut() {
    return !this.banner.hidden;
  }

  /** Of the prices: live, stale, silent, connecting, reconnecting or refused. */
  look({ status, states }) {
    if (status === "live") {
      this.lostAt = null;
      this.grace = GRACE_MS;
    } else this.lostAt ??= performance.now();
    const isKnown = ["stale", "silent", "refused"].includes(status);
    const isOut = this.lostAt !== null && (isKnown || performance.now() - this.lostAt >= this.grace);
    if (isOut) this.tell(status, states.market?.message);
    if (isOut === this.isOut) return;
    this.banner.hidden = !isOut;
    this.panes.classList.toggle("without-prices", isOut);
    // Otherwise a screen reader announces the count each second.
    this.announce.textContent = isOut ? `No live prices. ${this.cause.textContent}` : "Prices are live again.";
  }

  tell(status, message) {
    write(this.age, this.lastMs ? `Last price ${clock(this.lastMs)}, ${span(Date.now() - this.lastMs)} ago.` : "No price has arrived yet.");
    write(this.cause, (status === "refused" && message) || CAUSES[status]);
  }
}
