// The address contains what the page shows, so that it can be shared, and Back works.
import { keep, kept } from "./kept.js";

export class Address {
  /** `changed` is called with what to show when the user goes back or forward. */
  constructor({ symbols, timeframes, symbol, timeframe }, changed) {
    Object.assign(this, { symbols, timeframes });
    const asked = this.read();
    this.shown = {
      symbol: asked.symbol ?? allowed(kept("symbol"), symbols) ?? symbol,
      timeframe: asked.timeframe ?? allowed(kept("timeframe"), timeframes) ?? timeframe,
    };
    history.replaceState(null, "", this.url());
    addEventListener("popstate", () => {
      Object.assign(this.shown, without(this.read()));
      changed(this.shown);
    });
  }

  /** Show something else: `{ symbol }`, `{ timeframe }` or both. Returns whether it is something else.
   * What is only passed on the way to another takes the place of what was passed before. */
  go(change, isPassing = false) {
    if (change.symbol) keep("symbol", change.symbol);
    const before = this.url();
    Object.assign(this.shown, change);
    if (this.url() === before) return false;
    const how = isPassing && history.state?.isPassing ? "replaceState" : "pushState";
    history[how]({ isPassing }, "", this.url());
    return true;
  }

  /** What the address names, as far as it exists. */
  read() {
    const query = new URLSearchParams(location.search);
    return {
      symbol: allowed(query.get("symbol")?.replace("/", "").toUpperCase(), this.symbols),
      timeframe: allowed(query.get("tf")?.toLowerCase(), this.timeframes),
    };
  }

  url() {
    const query = new URLSearchParams(location.search);
    query.set("symbol", this.shown.symbol);
    query.set("tf", this.shown.timeframe);
    return `?${query}${location.hash}`;
  }
}

const allowed = (value, values) => (values.includes(value) ? value : undefined);
const without = (found) => Object.fromEntries(Object.entries(found).filter(([, value]) => value !== undefined));
