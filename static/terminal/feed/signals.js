// The public feed of signals, the active ones with their present gain.
import { module, persist } from "../api.js";
import { isOpen } from "../page/hours.js";
import { ago, price, signed, span, write } from "../format.js";
import { FeedPane, phrase } from "./feed_pane.js";
import { Fills } from "./fills.js";
import { closedGain, gainNow, gainText } from "./gains.js";

const CLOSED_SHOWN = 30;
// Of one instrument, for its chart: more than the list has of all.
const CLOSED_DRAWN = 100;
const POLL_MS = 20_000;
// The placeholder in the address of a signal's page.
const NO_ID = "00000000-0000-0000-0000-000000000000";

export class Signals {
  /** `isFresh` answers whether the prices of a symbol come; `changed` hears that the list did, `point` which signal is
   * looked at, `bring` which one was picked. */
  constructor(pane, { api, instruments, isFresh, changed, point, bring }) {
    Object.assign(this, { api, instruments, isFresh, changed, point, bring });
    this.pane = new FeedPane(pane, { what: "Signals", nothing: "No signals yet. New signals appear here as they are published." });
    this.template = pane.querySelector("template");
    this.page = this.pane.list.dataset.page;
    this.endings = JSON.parse(this.pane.list.dataset.endings);
    this.fills = new Fills(this.pane.list.dataset.filled, () => this.showFills());
    this.known = new Map();
    this.items = new Map();
    this.past = new Map();
    this.ticks = new Map();
    this.heard = [];
    this.isLive = false;
    this.picked = null;
    setInterval(() => this.refresh(), POLL_MS);
  }

  refresh() {
    for (const [id, item] of this.items) this.tellWhen(item, this.known.get(id));
    this.showGains();
    this.askFills();
    if (!this.isLive && !this.wanted) this.load();
  }

  askFills() {
    // Without an answer, the next call asks again.
    this.fills.ask([...this.items.keys(), ...(this.past.get(this.looked)?.keys() ?? [])]).catch(() => {});
  }

  showFills() {
    for (const [id, item] of this.items) {
      const { status, symbol } = this.known.get(id);
      const fill = this.fills.of(id);
      if (status === "active" && this.fills.isWaiting(id)) partOf(item, "status").textContent = "Waiting for its fill";
      else if (status === "active") partOf(item, "status").textContent = "Active";
      partOf(item, "filled").hidden = !fill;
      if (fill) partOf(item, "fill").textContent = price(fill, this.instruments[symbol]?.digits ?? 5);
    }
    this.showGains();
    this.changed();
    // Without the module nothing is marked, which claims nothing.
    this.mark().catch(() => {});
  }

  /** A later load takes the place of one that is still under way. */
  async load() {
    const wanted = (this.wanted = {});
    const found = await persist(() => this.ask(), () => this.wanted === wanted);
    if (this.wanted !== wanted) return;
    this.wanted = null;
    this.known = new Map(found.flatMap(({ items }) => items).map((signal) => [signal.id, signal]));
    // The stream may be ahead of the answer.
    this.learn(this.heard);
    this.render();
    this.pane.tell(this.words);
  }

  async ask() {
    this.heard = [];
    const lists = [{ status: "active", limit: 50 }, { status: "closed", limit: CLOSED_SHOWN }];
    try {
      return await Promise.all(lists.map((query) => this.api.get("signals", query)));
    } catch (error) {
      this.pane.fail(error);
      throw error;
    }
  }

  /** The stream is up, perhaps again: requests what it may have missed. */
  streamIs({ status, message }) {
    const wasLive = this.isLive;
    this.isLive = status === "live";
    const every = `The list is updated every ${POLL_MS / 1000} s.`;
    this.words = status === "refused" || message ? `Not live: ${message || "the stream was refused."} ${every}` : "";
    this.pane.tell(this.words);
    if (this.isLive && !wasLive) this.load();
  }

  hear(frames) {
    if (!frames.length) return;
    if (this.wanted) this.heard.push(...frames);
    this.learn(frames);
    this.render();
  }

  learn(frames) {
    for (const { type, time, ...signal } of frames) {
      if (type === "signal.closed") {
        this.known.set(signal.id, signal);
        this.past.get(signal.symbol)?.set(signal.id, signal);
      } else this.known.set(signal.id, { ...signal, status: "active" });
    }
  }

  of(symbol) {
    const listed = [...this.known.values()].filter((signal) => signal.symbol === symbol);
    const all = new Map([...(this.past.get(symbol) ?? []), ...listed.map((signal) => [signal.id, signal])]);
    return [...all].map(([id, signal]) => ({ ...signal, fill: this.fills.of(id), isUnfilled: this.fills.isUnfilled(id) }));
  }

  /** The chart shows an instrument: its ended signals are drawn, too. */
  async look(symbol) {
    this.looked = symbol;
    if (this.past.has(symbol)) return;
    const query = { symbol, status: "closed", limit: CLOSED_DRAWN };
    const found = await persist(() => this.api.get("signals", query), () => this.looked === symbol);
    if (!found) return;
    this.past.set(symbol, new Map(found.items.map((signal) => [signal.id, signal])));
    this.changed();
    this.askFills();
  }

  render() {
    const newest = (one, other) => (other.closed_at ?? other.timestamp).localeCompare(one.closed_at ?? one.timestamp);
    const all = [...this.known.values()].sort(newest);
    const active = all.filter(({ status }) => status === "active");
    const closed = all.filter(({ status }) => status === "closed").slice(0, CLOSED_SHOWN);
    this.known = new Map([...active, ...closed].map((signal) => [signal.id, signal]));
    const focused = [...this.items].find(([, item]) => item.contains(this.pane.focused));
    this.items = new Map([...this.known].map(([id, signal]) => [id, this.item(signal)]));
    this.showFills();
    this.pane.show([...this.items.values()]);
    if (focused) this.items.get(focused[0])?.querySelector("button").focus();
    this.askFills();
  }

  /** Fills and results are marked after they were checked, which may take longer than the list. */
  async mark() {
    const all = [...this.items].map(([id, item]) => ({ id, item, status: this.known.get(id).status }));
    const decided = all.filter(({ id, status }) => status === "closed" || this.fills.of(id) !== undefined);
    if (!decided.length) return;
    const { mark } = await module(import.meta.resolve("./marks.js"));
    mark(decided, this.pane.list.dataset.checked);
  }

  tellWhen(item, { closed_at: closedAt, timestamp }) {
    write(partOf(item, "when"), `${closedAt ? "closed " : ""}${ago(closedAt ?? timestamp)}`);
  }

  item(signal) {
    const item = this.template.content.cloneNode(true).firstElementChild;
    const { digits } = this.instruments[signal.symbol] ?? { digits: 5 };
    const fill = (name, text) => (partOf(item, name).textContent = text);
    const isOver = signal.status === "closed";
    fill("direction", signal.direction === "buy" ? "▲ Buy" : "▼ Sell");
    fill("symbol", signal.symbol);
    fill("user", `by ${signal.user}`);
    fill("status", isOver ? this.endings[signal.close_reason] : "Active");
    for (const level of ["entry", "stop_loss", "take_profit"]) fill(level, price(signal[level], digits));
    this.tellWhen(item, signal);
    item.dataset.id = signal.id;
    Object.assign(partOf(item, "page"), { href: this.page.replace(NO_ID, signal.id), textContent: isOver ? "Proof" : "Details" });
    item.classList.add(signal.direction);
    item.classList.toggle("picked", signal.id === this.picked);
    if (isOver) {
      this.result(item, signed(signal.pnl_r, 2), closedGain(signal, this.instruments[signal.symbol]));
      item.classList.add("over", signal.pnl_r < 0 ? "lost" : "won");
    }
    this.listen(item, signal);
    return item;
  }

  result(item, risks, gain, when = "") {
    const texts = [`${risks} R`, gain, when].filter(Boolean);
    const part = partOf(item, "result");
    if (part.dataset.text === texts.join()) return;
    part.dataset.text = texts.join();
    part.replaceChildren(...texts.map((text) => phrase(text)));
  }

  listen(item, { id, symbol }) {
    item.querySelector("button").disabled = !this.instruments[symbol];
    for (const begins of ["mouseenter", "focusin"]) item.addEventListener(begins, () => this.point(id));
    for (const ends of ["mouseleave", "focusout"]) item.addEventListener(ends, () => this.point(this.picked));
    item.addEventListener("click", ({ target }) => target.closest("a") || !this.instruments[symbol] || this.pick(id));
  }

  /** A second click picks none. */
  pick(id) {
    this.picked = this.picked === id ? null : id;
    for (const [each, item] of this.items) item.classList.toggle("picked", each === this.picked);
    this.point(this.picked);
    this.bring(this.known.get(id));
  }

  price(ticks) {
    for (const tick of ticks) this.ticks.set(tick.symbol, tick);
    this.showGains();
  }

  /** The gains of active signals at the last prices. */
  showGains() {
    for (const [id, item] of this.items) {
      const signal = this.known.get(id);
      const tick = signal.status === "active" && this.ticks.get(signal.symbol);
      const fill = this.fills.of(id);
      if (!tick || fill === undefined) continue;
      const facts = this.instruments[signal.symbol];
      const gain = gainNow(signal, tick, fill);
      this.result(item, signed(gain.risks, 2), gainText(gain, facts), this.whenOf(tick, gain, facts));
      item.classList.toggle("aged", !this.isFresh(signal.symbol));
      // A gain that is displayed as zero is neither.
      const risks = gain.risks.toFixed(2);
      item.classList.toggle("ahead", risks > 0);
      item.classList.toggle("behind", risks < 0);
    }
  }

  /** Of when a gain is. */
  whenOf({ symbol, time }, { at }, facts) {
    if (facts && !isOpen(facts.sessions, Date.now())) return "at the last price, market closed";
    return this.isFresh(symbol) ? "now" : `at ${price(at, facts?.digits ?? 5)}, ${span(Date.now() - time)} ago`;
  }
}

const partOf = (item, name) => item.querySelector(`[data-part="${name}"]`);
