// The table of instruments: which are shown, in which order, and which one is selected.
import { persist } from "../api.js";
import { colours, onThemeChange } from "../colours.js";
import { keep, kept } from "../page/kept.js";
import { SORTS, sections } from "./order.js";
import { Row } from "./row.js";
import { Painter } from "./sparkline.js";

const POLL_MS = 60_000;
// The longest wait for a first price.
const PATIENCE_MS = 6_000;
const NEXT = {
  name: { name: "-name", "-name": "group" },
  change: { "-change": "change", change: "group" },
};
const FIRST = { name: "name", change: "-change" };
const ARIA = { name: { name: "ascending", "-name": "descending" }, change: { "-change": "descending", change: "ascending" } };

export class Watchlist {
  /** `choose` shows an instrument, `pass` does on the way to another; `learn` receives the other facts of the service. */
  constructor(pane, { api, address, instruments, basis, choose, pass, learn }) {
    Object.assign(this, { pane, api, address, pass, learn });
    this.table = pane.querySelector("table");
    this.search = pane.querySelector("input[type=search]");
    this.added = pane.querySelector("#watch-added");
    this.none = pane.querySelector("#watch-none");
    this.rows = new Map();
    this.painter = new Painter();
    this.tint = colours();
    onThemeChange(() => (this.tint = colours()));
    this.sort = SORTS.includes(kept("sort")) ? kept("sort") : "group";
    this.favourites = keptFavourites();
    for (const element of this.table.querySelectorAll("tr[data-symbol]")) {
      this.add(new Row(element, instruments[element.dataset.symbol], () => this.tint, basis), choose);
    }
    this.listen();
    if (this.sort !== "group" || this.favourites.size) this.arrange();
    setInterval(() => document.hidden || this.load(), POLL_MS);
    setTimeout(() => this.settle(), PATIENCE_MS);
  }

  /** Clears what still has no price. */
  settle() {
    this.table.removeAttribute("aria-busy");
  }

  add(row, choose) {
    this.rows.set(row.symbol, row);
    row.button.addEventListener("click", () => choose(row.symbol));
    row.star.checked = this.favourites.has(row.symbol);
    row.star.addEventListener("change", () => this.favour(row));
  }

  listen() {
    this.search.addEventListener("input", () => this.arrange());
    for (const button of this.table.querySelectorAll("thead button")) {
      button.addEventListener("click", () => this.sortBy(NEXT[button.dataset.sort][this.sort] ?? FIRST[button.dataset.sort]));
    }
  }

  /** Another tab may have changed them. */
  favour({ symbol, star }) {
    this.favourites = keptFavourites();
    if (star.checked) this.favourites.add(symbol);
    else this.favourites.delete(symbol);
    keep("favourites", [...this.favourites].join(" "));
    for (const row of this.rows.values()) row.star.checked = this.favourites.has(row.symbol);
    this.arrange();
    star.focus();
  }

  sortBy(sort) {
    this.sort = sort;
    keep("sort", sort);
    this.arrange();
    this.table.parentElement.scrollTop = 0;
  }

  /** Only when the user asks for it or a market opens or closes: rows do not jump with every price. */
  arrange() {
    const found = sections([...this.rows.values()], { sort: this.sort, favourites: this.favourites, query: this.search.value });
    const bodies = found.map(({ title, rows }) => {
      const body = document.createElement("tbody");
      body.append(heading(title), ...rows.map(({ element }) => element));
      return body;
    });
    const focused = document.activeElement;
    for (const body of this.table.querySelectorAll("tbody")) body.remove();
    this.table.append(...bodies);
    if (focused?.isConnected) focused.focus({ preventScroll: true });
    for (const cell of this.table.querySelectorAll("thead [data-sorts]")) {
      cell.setAttribute("aria-sort", ARIA[cell.dataset.sorts][this.sort] ?? "none");
    }
    this.none.hidden = found.length > 0;
    this.none.textContent = found.length ? "" : `No instrument matches “${this.search.value.trim()}”.`;
  }

  /** Changes without a tick: instruments that stopped or were added. */
  async load() {
    try {
      const answer = await fetch(this.address, { signal: AbortSignal.timeout(15_000) });
      if (!answer.ok) throw new Error(`${this.address}: ${answer.status}`);
      this.take(await answer.json());
    } catch (error) {
      console.warn(error.message);
    }
  }

  take({ instruments, ...more }) {
    const before = this.states();
    for (const [symbol, known] of Object.entries(instruments)) this.rows.get(symbol)?.know(known);
    const others = Object.keys(instruments).filter((symbol) => !this.rows.has(symbol));
    this.added.textContent = others.length ? `New instruments: ${others.join(", ")}. Reload the page to add them.` : "";
    if (before !== this.states()) this.arrange();
    this.learn(more);
  }

  states() {
    return [...this.rows.values()].map(({ state }) => state).join();
  }

  /** Prices of another series begin, with days of their own. */
  async begin(symbol) {
    const row = this.rows.get(symbol);
    if (!row) return;
    row.forget();
    const wanted = (row.wanted = {});
    const query = { timeframe: "1d", bars: 2 };
    const market = await persist(() => this.api.get(`market/${symbol}`, query), () => row.wanted === wanted);
    if (!market || row.wanted !== wanted) return;
    row.begin(market.ohlcv, market.quote);
    this.painter.ask(row);
  }

  select(symbol) {
    this.chosen = symbol;
    for (const { symbol: name, element, button } of this.rows.values()) {
      element.classList.toggle("chosen", name === symbol);
      button.setAttribute("aria-pressed", String(name === symbol));
    }
    const row = this.rows.get(symbol).element.getBoundingClientRect();
    const list = this.table.parentElement.getBoundingClientRect();
    // Only the list is moved, and not the page.
    if (row.top < list.top + row.height || row.bottom > list.bottom) this.table.parentElement.scrollTop += row.top - (list.top + list.bottom) / 2;
  }

  /** One look per instrument, however many ticks came. */
  hear(ticks) {
    const now = performance.now();
    let isOther = false;
    for (const [symbol, tick] of new Map(ticks.map((tick) => [tick.symbol, tick]))) {
      const row = this.rows.get(symbol);
      if (!row) continue;
      isOther = row.hear(tick, now) || isOther;
      this.painter.ask(row);
    }
    if (isOther) this.arrange();
    this.settle();
  }

  /** Called regularly: how long until a market opens, and whether one is silent. */
  tell(now) {
    const rows = [...this.rows.values()];
    for (const row of rows) if (row.state !== "open") row.tell(now);
    if (!document.hidden && rows.some((row) => row.isSilent(performance.now()))) this.load();
  }

  /** Whether no market that is open has fresh prices. */
  get isStale() {
    const states = [...this.rows.values()].map(({ state }) => state);
    return states.includes("stale") && !states.includes("open");
  }

  /** All of them in the order of the table, whatever it is filtered by. */
  inOrder() {
    const { sort, favourites } = this;
    return sections([...this.rows.values()], { sort, favourites }).flatMap(({ rows }) => rows);
  }

  /** To the next row that is shown, or the one before. */
  step(by) {
    const shown = [...this.table.querySelectorAll("tr[data-symbol]")].map(({ dataset }) => dataset.symbol);
    const next = this.rows.get(shown[shown.indexOf(this.chosen) + by]);
    if (!next) return;
    const isHere = this.table.contains(document.activeElement);
    this.pass(next.symbol);
    if (isHere) next.button.focus();
    else next.element.scrollIntoView({ block: "nearest" });
  }
}

const keptFavourites = () => new Set((kept("favourites") ?? "").split(" ").filter(Boolean));

function heading(title) {
  const row = document.createElement("tr");
  const cell = Object.assign(document.createElement("th"), { colSpan: 4, scope: "rowgroup", textContent: title });
  row.className = "group";
  row.append(cell);
  return row;
}
