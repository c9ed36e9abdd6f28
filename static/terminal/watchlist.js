// The table of instruments: the last price of each, and which one is looked at.
import { persist } from "./api.js";
import { colours, isStill, onThemeChange } from "./colours.js";
import { price, signed } from "./format.js";

const FLASH_MS = 450;
const FRESH_MS = 30_000;
const POLL_MS = 60_000;

export class Watchlist {
  constructor(table, added, { api, instruments, choose }) {
    Object.assign(this, { added, api, instruments });
    this.rows = new Map();
    this.tint = colours();
    onThemeChange(() => (this.tint = colours()));
    for (const row of table.querySelectorAll("tr[data-symbol]")) {
      const cells = Object.fromEntries([...row.querySelectorAll("[data-cell]")].map((cell) => [cell.dataset.cell, cell]));
      const button = row.querySelector("button");
      this.rows.set(row.dataset.symbol, { row, cells, button, day: Number(row.dataset.dayOpen) || null, flashedAt: 0 });
      button.addEventListener("click", () => choose(row.dataset.symbol));
    }
    table.addEventListener("keydown", (event) => this.move(event));
    setInterval(() => document.hidden || this.wanted || this.load(), POLL_MS);
  }

  /** What no tick tells: that there are none any more, or of others. */
  async load() {
    this.wanted = true;
    const { items } = await persist(() => this.api.get("symbols", { expand: "state" }), () => true);
    this.wanted = false;
    for (const { symbol, state } of items) this.mark(symbol, state);
    const others = items.map(({ symbol }) => symbol).filter((symbol) => !this.rows.has(symbol));
    this.added.textContent = others.length ? `New here: ${others.join(", ")}. Reload the page to watch them too.` : "";
  }

  /** Prices of another series begin, which opened the day at another one. */
  async begin(symbol) {
    const known = this.rows.get(symbol);
    if (!known) return;
    Object.assign(known, { day: null, of: undefined, bid: undefined, time: undefined });
    for (const cell of Object.values(known.cells)) write(cell, "");
    const wanted = (known.wanted = {});
    const query = { timeframe: "1d", bars: 1 };
    const market = await persist(() => this.api.get(`market/${symbol}`, query), () => known.wanted === wanted);
    if (!market || known.wanted !== wanted) return;
    const { ohlcv, quote } = market;
    const last = ohlcv.at(-1);
    known.day = last?.open ?? null;
    if (known.time === undefined) this.show(symbol, { ...quote, time: Date.parse(quote.timestamp) }, performance.now());
  }

  mark(symbol, state) {
    const known = this.rows.get(symbol);
    if (!known) return;
    known.row.classList.remove("open", "closed", "stale");
    known.row.classList.add(state);
    write(known.row.querySelector(".mark"), state === "open" ? "" : state);
  }

  select(symbol) {
    for (const [name, { row, button }] of this.rows) {
      row.classList.toggle("chosen", name === symbol);
      button.setAttribute("aria-pressed", String(name === symbol));
    }
  }

  /** One look per instrument, however many ticks came. */
  hear(ticks) {
    const last = new Map(ticks.map((tick) => [tick.symbol, tick]));
    const now = performance.now();
    for (const [symbol, tick] of last) this.show(symbol, tick, now);
  }

  show(symbol, tick, now) {
    const known = this.rows.get(symbol);
    if (!known) return;
    const { digits } = this.instruments[symbol];
    const before = known.bid;
    const day = Math.floor(tick.time / 86_400_000);
    if (known.of !== undefined && day > known.of) known.day = tick.bid;
    known.of = day;
    known.bid = tick.bid;
    write(known.cells.bid, price(tick.bid, digits));
    write(known.cells.ask, price(tick.ask, digits));
    write(known.cells.spread, price(tick.spread, digits));
    if (known.day) this.change(known.cells.change, (100 * (tick.bid - known.day)) / known.day);
    // A snapshot may be of last Friday: only a fresh price says that the market is open, or one after another.
    const isNew = known.time === undefined ? Date.now() - tick.time < FRESH_MS : tick.time > known.time;
    known.time = tick.time;
    if (isNew && !known.row.classList.contains("open")) this.mark(symbol, "open");
    if (before !== undefined && before !== tick.bid) this.flash(known, tick.bid > before ? "up" : "down", now);
  }

  change(cell, percent) {
    write(cell, `${signed(percent, 2)}%`);
    cell.className = percent > 0 ? "up" : percent < 0 ? "down" : "";
  }

  flash(known, direction, now) {
    if (isStill.matches || document.hidden || now - known.flashedAt < FLASH_MS) return;
    known.flashedAt = now;
    known.cells.bid.animate([{ backgroundColor: this.tint[`${direction}Soft`] }, { backgroundColor: "transparent" }], { duration: FLASH_MS });
  }

  move(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    const buttons = [...this.rows.values()].map(({ button }) => button);
    const next = buttons[buttons.indexOf(document.activeElement) + step];
    if (!next) return;
    event.preventDefault();
    next.focus();
    next.click();
  }
}

function write(cell, text) {
  if (cell.textContent !== text) cell.textContent = text;
}
