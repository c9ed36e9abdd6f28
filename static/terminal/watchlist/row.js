// One instrument of the watchlist: its last price, its day, and whether it trades.
import { isStill } from "../colours.js";
import { clock, price, priceOf, signed, write } from "../format.js";
import { opening, tradingDayOf } from "../page/hours.js";
import { lineOf, placeIn } from "./sparkline.js";

const FLASH_MS = 450;
const FRESH_MS = 30_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
const MOST_HOURS = 24;

export class Row {
  /** Its last price is of the kind that candles are made of: `basis`. */
  constructor(element, instrument, tint, basis) {
    Object.assign(this, { element, symbol: element.dataset.symbol, tint, basis });
    const { name, digits, staleAfterS, ...known } = instrument;
    Object.assign(this, { name, digits, staleAfterMs: 1000 * staleAfterS, heardAt: performance.now() });
    this.cells = Object.fromEntries([...element.querySelectorAll("[data-cell]")].map((cell) => [cell.dataset.cell, cell]));
    this.button = element.querySelector("button");
    this.star = element.querySelector("input");
    this.line = element.querySelector(".spark path");
    this.at = element.querySelector(".range .at");
    this.flashedAt = 0;
    this.know(known);
  }

  /** The day so far, from the service. */
  know({ group, state, opensMs, bid, last, quotedMs, dayMs, previousClose, low, high, hourMs, closes }) {
    Object.assign(this, { group, opensMs, dayMs, previousClose, low, high, hourMs, closes });
    if (this.time === undefined) Object.assign(this, { bid, last, quotedMs });
    this.mark(state);
    this.draw();
  }

  /** Prices of another series begin: nothing earlier applies to them. */
  forget() {
    Object.assign(this, { dayMs: null, previousClose: null, low: null, high: null, hourMs: null, closes: [], bid: null, last: null, quotedMs: null, time: undefined, change: null });
    for (const name of ["bid", "ask", "change", "day"]) write(this.cells[name], "");
    this.draw();
  }

  /** The day as its candle has it, and the day before. */
  begin(days, quote) {
    const [day, before] = [days.at(-1), days.at(-2)];
    if (day) Object.assign(this, { dayMs: Math.floor(Date.parse(day.time) / DAY_MS) * DAY_MS, previousClose: before?.close ?? null, low: day.low, high: day.high, last: day.close });
    if (this.time === undefined) this.hear({ ...quote, time: Date.parse(quote.timestamp) }, performance.now());
  }

  /** Returns whether its state changed. */
  hear({ bid, ask, time }, now) {
    const before = this.bid;
    this.bid = bid;
    if (this.follow(priceOf({ bid, ask }, this.basis, this.digits), time)) this.drawRange();
    write(this.cells.bid, price(bid, this.digits));
    write(this.cells.ask, price(ask, this.digits));
    this.showChange();
    // A snapshot may be from last Friday: only a fresh price, or a second one, shows that the market is open.
    const isNew = this.time === undefined ? Date.now() - time < FRESH_MS : time > this.time;
    this.time = this.quotedMs = time;
    this.heardAt = now;
    if (before !== null && before !== bid) this.flash(bid > before ? "up" : "down", now);
    if (!isNew || this.state === "open") return false;
    this.mark("open");
    return true;
  }

  /** Continue from the known day and hour. Returns whether the day's range has changed. */
  follow(last, time) {
    const [day, hour] = [Math.floor(time / DAY_MS) * DAY_MS, Math.floor(time / HOUR_MS) * HOUR_MS];
    if (this.dayMs === null || day > this.dayMs) {
      // The first known day has no day before it.
      Object.assign(this, { previousClose: this.dayMs === null ? null : this.last, dayMs: day, low: last, high: last });
    }
    const { low, high } = this;
    this.last = last;
    this.low = Math.min(this.low ?? last, last);
    this.high = Math.max(this.high ?? last, last);
    if (this.hourMs !== null && hour === this.hourMs) this.closes[this.closes.length - 1] = last;
    else if (this.hourMs === null || hour > this.hourMs) {
      this.closes.push(last);
      this.hourMs = hour;
      if (this.closes.length > MOST_HOURS) this.closes.shift();
    }
    return low !== this.low || high !== this.high;
  }

  /** From the close of the day before, as the daily chart counts it. */
  showChange() {
    const { last, previousClose } = this;
    this.change = last === null || !previousClose ? null : (100 * (last - previousClose)) / previousClose;
    write(this.cells.change, this.change === null ? "" : `${signed(this.change, 2)}%`);
    // As displayed: a change of 0.00% has no direction.
    this.turn(Math.round(100 * this.change));
  }

  /** Open, but without a message for too long: only the service knows why. */
  isSilent(now) {
    return this.state === "open" && now - this.heardAt > this.staleAfterMs;
  }

  turn(change) {
    const direction = change > 0 ? "up" : change < 0 ? "down" : "";
    if (this.element.dataset.direction !== direction) this.element.dataset.direction = direction;
  }

  mark(state) {
    this.state = state;
    this.element.classList.remove("open", "closed", "stale");
    this.element.classList.add(state);
    write(this.cells.mark, state === "open" ? "" : state);
    this.tell(Date.now());
  }

  /** Texts that change while no price comes. */
  tell(now) {
    write(this.cells.about, this.words(now) || whole(this.name));
    write(this.cells.day, this.dayMs === null ? "" : tradingDayOf(this.dayMs, now));
  }

  words(now) {
    if (this.state === "closed") return opening(this.opensMs, now);
    if (this.state === "stale" && this.quotedMs !== null) return `last price ${clock(this.quotedMs)}`.replaceAll(" ", "\u00a0");
    return "";
  }

  draw() {
    this.showChange();
    this.line.setAttribute("d", lineOf(this.closes));
    this.drawRange();
  }

  drawRange() {
    const isKnown = this.last !== null && this.low !== null;
    this.at.parentElement.toggleAttribute("hidden", !isKnown);
    if (!isKnown) return write(this.cells.range, "");
    this.at.setAttribute("x", (0.94 * placeIn(this.low, this.high, this.last)).toFixed(1));
    write(this.cells.range, `Day’s range ${price(this.low, this.digits)} to ${price(this.high, this.digits)}`);
  }

  flash(direction, now) {
    if (isStill.matches || document.hidden || now - this.flashedAt < FLASH_MS) return;
    this.flashedAt = now;
    this.cells.bid.animate([{ backgroundColor: this.tint()[`${direction}Soft`] }, { backgroundColor: "transparent" }], { duration: FLASH_MS });
  }
}

// Of a pair, a second line begins after the stroke.
const whole = (name) => (name.includes("/") ? name.replace(/(?<!\/) /g, "\u00a0") : name);
