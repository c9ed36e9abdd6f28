// The public feed of signals, the active ones with what they would make now.
import { persist } from "../api.js";
import { ago, price, signed } from "../format.js";

const REASONS = {
  take_profit: "target reached",
  stop_loss: "stopped out",
  manual: "closed by the publisher",
  expired: "expired",
  cancelled: "cancelled by staff",
};
const CLOSED_SHOWN = 15;
const POLL_MS = 20_000;

export class Signals {
  constructor(list, template, { api, instruments, choose, changed }) {
    Object.assign(this, { list, template, api, instruments, choose, changed });
    this.known = new Map();
    this.items = new Map();
    this.ticks = new Map();
    this.heard = [];
    this.isLive = false;
    setInterval(() => this.refresh(), POLL_MS);
  }

  refresh() {
    for (const [id, item] of this.items) this.tellWhen(item, this.known.get(id));
    if (!this.isLive && !this.wanted) this.load();
  }

  /** A later load takes the place of one that is still under way. */
  async load() {
    const wanted = (this.wanted = {});
    const found = await persist(
      () => {
        this.heard = [];
        return Promise.all([
          this.api.get("signals", { status: "active", limit: 50 }),
          this.api.get("signals", { status: "closed", limit: CLOSED_SHOWN }),
        ]);
      },
      () => this.wanted === wanted,
    );
    if (this.wanted !== wanted) return;
    this.wanted = null;
    this.known = new Map(found.flatMap(({ items }) => items).map((signal) => [signal.id, signal]));
    // The stream may have said more than was known when the answer was written.
    this.learn(this.heard);
    this.render();
  }

  /** The stream is up, again perhaps: what it did not tell is asked for. */
  streamIs({ status }) {
    const wasLive = this.isLive;
    this.isLive = status === "live";
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
      if (type === "signal.closed") this.known.set(signal.id, signal);
      else this.known.set(signal.id, { ...signal, status: "active" });
    }
  }

  of(symbol) {
    return [...this.known.values()].filter((signal) => signal.symbol === symbol);
  }

  render() {
    const newest = (one, other) => (other.closed_at ?? other.timestamp).localeCompare(one.closed_at ?? one.timestamp);
    const all = [...this.known.values()].sort(newest);
    const active = all.filter(({ status }) => status === "active");
    const closed = all.filter(({ status }) => status === "closed").slice(0, CLOSED_SHOWN);
    this.known = new Map([...active, ...closed].map((signal) => [signal.id, signal]));
    const focused = [...this.items].find(([, item]) => item.contains(document.activeElement));
    this.items = new Map([...this.known].map(([id, signal]) => [id, this.item(signal)]));
    this.showGains();
    this.list.replaceChildren(...this.items.values());
    if (focused) this.items.get(focused[0])?.querySelector("button").focus();
    this.changed();
  }

  tellWhen(item, { closed_at: closedAt, timestamp }) {
    item.querySelector('[data-part="when"]').textContent = ago(closedAt ?? timestamp);
  }

  item(signal) {
    const item = this.template.content.cloneNode(true).firstElementChild;
    const { digits } = this.instruments[signal.symbol] ?? { digits: 5 };
    const fill = (name, text) => (item.querySelector(`[data-part="${name}"]`).textContent = text);
    fill("direction", signal.direction === "buy" ? "▲ Buy" : "▼ Sell");
    fill("symbol", signal.symbol);
    fill("user", signal.user);
    for (const level of ["entry", "stop_loss", "take_profit"]) fill(level, price(signal[level], digits));
    this.tellWhen(item, signal);
    item.classList.add(signal.direction);
    if (signal.status === "closed") {
      fill("result", `${signed(signal.pnl, 1)} pips (${signed(signal.pnl_r, 2)} R), ${REASONS[signal.close_reason]}`);
      item.classList.add("ended", signal.pnl < 0 ? "lost" : "won");
    }
    const button = item.querySelector("button");
    button.disabled = !this.instruments[signal.symbol];
    button.addEventListener("click", () => this.choose(signal.symbol));
    return item;
  }

  price(ticks) {
    for (const tick of ticks) this.ticks.set(tick.symbol, tick);
    this.showGains();
  }

  /** What the active ones would make if they were closed at the last prices. */
  showGains() {
    for (const [id, item] of this.items) {
      const signal = this.known.get(id);
      const tick = signal.status === "active" && this.ticks.get(signal.symbol);
      if (!tick) continue;
      const gained = signal.direction === "buy" ? tick.bid - signal.entry : signal.entry - tick.ask;
      const text = `${signed(gained / Math.abs(signal.entry - signal.stop_loss), 2)} R now`;
      const part = item.querySelector('[data-part="result"]');
      if (part.textContent !== text) part.textContent = text;
    }
  }
}
