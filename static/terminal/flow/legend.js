// What the pane of order flow says in words: units, the bar that is looked at, and why nothing moves.
import { clock, moment, price, signed, write } from "../format.js";
import { tradingWords } from "./trading.js";

const BEAT_MS = 1_000;
const PATIENCE_MS = 30_000;
const HOUR_S = 3_600;
const NAMES = { 60: "1m", 300: "5m", 900: "15m", 3600: "1h", 14_400: "4h", 86_400: "1d" };
const MINUTE = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", timeZone: "UTC" });
// Ticks are whole, traded volumes have decimals that nobody reads.
const DIGITS = { true: 2, false: 0 };

export class FlowLegend {
  constructor(pane) {
    this.pane = pane;
    this.parts = Object.fromEntries([...pane.querySelectorAll("[data-part]")].map((part) => [part.dataset.part, part]));
    this.quotedMs = {};
    this.stream = null;
    setInterval(() => document.hidden || this.beat(), BEAT_MS);
  }

  begin(symbol, facts) {
    Object.assign(this, { symbol, facts, digits: DIGITS[facts.hasTrades] });
    write(this.parts.unit, facts.hasTrades ? "in traded volume" : "in ticks, side estimated");
    write(this.parts.absorption, "No absorption since the page was opened.");
    this.beat();
  }

  price(ticks) {
    for (const { symbol, time } of ticks) this.quotedMs[symbol] = time;
  }

  streamIs(state) {
    this.stream = state;
    this.beat();
  }

  /** Closed, stale or cut off: the pane says which. */
  beat() {
    if (!this.facts) return;
    const quotedMs = this.quotedMs[this.symbol] ?? this.facts.quotedMs;
    const trading = tradingWords({ sessions: this.facts.sessions, quotedMs, patienceMs: PATIENCE_MS }, Date.now());
    write(this.parts.trading, trading || streamWords(this.stream));
  }

  /** The numbers of one bar, each beside the scale that it is read on. */
  show(bar, seconds) {
    const { delta, sum, caption } = this.parts;
    if (!bar) return;
    const opened = seconds < HOUR_S ? `${MINUTE.format(bar.time * 1000)} UTC` : moment(bar.time * 1000);
    const [change, running] = [bar.delta, bar.sum].map((value) => signed(value, this.digits));
    const volumes = bar.isWhole ? `bought ${price(bar.bought, this.digits)}, sold ${price(bar.sold, this.digits)}` : "";
    delta.replaceChildren(phrase(`Delta per ${NAMES[seconds]} bar`), coloured(change, bar.delta), extra(volumes), extra(opened));
    sum.replaceChildren(phrase("Cumulative delta"), coloured(running, bar.sum), extra("since midnight UTC"));
    write(caption, `Order flow of ${this.symbol}, ${opened}: delta ${change}, since midnight UTC ${running}.`);
  }

  absorb({ time, side, price: at, volume, strength }) {
    const who = side === "bid" ? "Buyers absorbed selling" : "Sellers absorbed buying";
    const where = price(at, this.facts.digits);
    write(this.parts.absorption, `${clock(time)}: ${who} of ${price(volume, this.digits)} at ${where} (strength ${strength.toFixed(1)}).`);
  }

  /** What stands where no bars can. */
  tell({ symbol, hasLoaded, failure, minutes }) {
    const isBare = minutes.isEmpty;
    this.parts.canvas.classList.toggle("skeleton", isBare && !hasLoaded && !failure);
    let words = "";
    if (isBare && failure) words = `The order flow of ${symbol} could not be loaded. ${failure} Trying again…`;
    else if (isBare && hasLoaded) words = `${symbol} has no order flow yet. It is computed from live prices, minute by minute.`;
    write(this.parts.state, words);
    this.pane.classList.toggle("bare", isBare);
    if (isBare) write(this.parts.caption, words || `Order flow of ${symbol}: loading.`);
  }

  /** The title of the lower scale stands at its top, wherever that is. */
  place(top) {
    this.parts.sum.style.top = `${top + 1}px`;
  }
}

function streamWords(state) {
  if (!state || (state.status === "live" && !state.isStale)) return "";
  if (state.status === "refused") return `Not live: ${state.message || "the stream was refused."} Closed minutes are still updated.`;
  if (state.isStale) return "The service is not receiving any prices.";
  return state.status === "reconnecting" ? "Reconnecting…" : "Connecting…";
}

/** Never broken in the middle. */
function phrase(text, tag = "span", name = "") {
  return Object.assign(document.createElement(tag), { className: `phrase ${name}`.trim(), textContent: text });
}

const coloured = (text, change) => phrase(text, "b", change < 0 ? "down" : change > 0 ? "up" : "");
// What a narrow pane has no room for.
const extra = (text) => phrase(text, "span", "extra");
