// The public feed of signals, the active ones with what they would make now.
import { persist } from "./api.js";
import { ago, price, signed } from "./format.js";

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
    this.isLive = false;
    setInterval(() => this.isLive || this.load(), POLL_MS);
  }

  async load() {
    const [active, closed] = await persist(
      () =>
        Promise.all([
          this.api.get("signals", { status: "active", limit: 50 }),
          this.api.get("signals", { status: "closed", limit: CLOSED_SHOWN }),
        ]),
      () => true,
    );
    this.known = new Map([...active.items, ...closed.items].map((signal) => [signal.id, signal]));
    this.render();
  }

  /** The stream is up, again perhaps: what it did not tell is asked for. */
  told({ status }) {
    const wasLive = this.isLive;
    this.isLive = status === "live";
    if (this.isLive && !wasLive) this.load();
  }

  hear(frames) {
    for (const { type, time, ...signal } of frames) {
      if (type === "signal.closed") this.known.set(signal.id, signal);
      else this.known.set(signal.id, { ...signal, status: "active" });
    }
    if (frames.length) this.render();
  }

  of(symbol) {
    return [...this.known.values()].filter((signal) => signal.symbol === symbol);
  }

  render() {
    const newest = (one, other) => (other.closed_at ?? other.timestamp).localeCompare(one.closed_at ?? one.timestamp);
    const all = [...this.known.values()].sort(newest);
    const active = all.filter(({ status }) => status === "active");
    const closed = all.filter(({ status }) => status === "closed").slice(0, CLOSED_SHOWN);
    this.items = new Map([...active, ...closed].map((signal) => [signal.id, this.item(signal)]));
    this.list.replaceChildren(...this.items.values());
    this.changed();
  }

  item(signal) {
    const item = this.template.content.cloneNode(true).firstElementChild;
    const { digits } = this.instruments[signal.symbol] ?? { digits: 5 };
    const fill = (name, text) => (item.querySelector(`[data-part="${name}"]`).textContent = text);
    fill("direction", signal.direction === "buy" ? "▲ Buy" : "▼ Sell");
    fill("symbol", signal.symbol);
    fill("user", signal.user);
    for (const level of ["entry", "stop_loss", "take_profit"]) fill(level, price(signal[level], digits));
    fill("when", ago(signal.closed_at ?? signal.timestamp));
    item.classList.add(signal.direction);
    if (signal.status === "closed") {
      fill("result", `${signed(signal.pnl, 1)} pips (${signed(signal.pnl_r, 2)} R), ${REASONS[signal.close_reason]}`);
      item.classList.add("ended", signal.pnl < 0 ? "lost" : "won");
    }
    item.querySelector("button").addEventListener("click", () => this.choose(signal.symbol));
    return item;
  }

  /** What the active ones would make if they were closed at these prices. */
  price(ticks) {
    const last = new Map(ticks.map((tick) => [tick.symbol, tick]));
    for (const [id, item] of this.items) {
      const signal = this.known.get(id);
      const tick = signal.status === "active" && last.get(signal.symbol);
      if (!tick) continue;
      const gained = signal.direction === "buy" ? tick.bid - signal.entry : signal.entry - tick.ask;
      const text = `${signed(gained / Math.abs(signal.entry - signal.stop_loss), 2)} R now`;
      const part = item.querySelector('[data-part="result"]');
      if (part.textContent !== text) part.textContent = text;
    }
  }
}
