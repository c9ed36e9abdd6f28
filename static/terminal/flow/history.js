// The order flow of one instrument from the service: the last hours at once, older ones as far as the user
// scrolls, and each minute when it has closed.
import { Failure, persist } from "../api.js";
import { FlowMinutes } from "./minutes.js";

const MOST = 500;
const MINUTE_MS = 60_000;
// A minute closes up to two seconds after its end, and is written within another.
const CLOSED_MS = 4_000;
// The most answers that are requested to fill a chart of days.
const MOST_PAGES = 8;

export class FlowHistory {
  #api;
  #changed;
  #wanted;
  #pages = 0;

  constructor(symbol, api, changed) {
    Object.assign(this, { symbol, minutes: new FlowMinutes(), hasLoaded: false, failure: null, isComplete: false, isReachingBack: false });
    this.#api = api;
    this.#changed = changed;
  }

  /** A later refresh takes the place of one that is still under way. */
  async refresh() {
    const wanted = (this.#wanted = {});
    const items = await persist(() => this.#ask({ limit: MOST }), () => this.#wanted === wanted);
    if (!items || this.#wanted !== wanted) return;
    this.#wanted = null;
    const reaches = Date.parse(items[0]?.time) / 1000 <= this.minutes.confirmed;
    if (items.length === MOST && !reaches) {
      this.minutes.restart(items);
      this.#pages = 0;
    } else this.minutes.confirm(items);
    if (!this.hasLoaded) this.isComplete = items.length < MOST;
    this.hasLoaded = true;
    this.#changed(this);
  }

  /** What has closed since. */
  async renew() {
    if (this.#wanted || !this.hasLoaded) return;
    const { confirmed } = this.minutes;
    if (confirmed === undefined || Date.now() / 1000 - confirmed > (MOST * MINUTE_MS) / 1000) return this.refresh();
    const items = await this.#ask({ start: (confirmed + 60) * 1000, limit: MOST }).catch(() => null);
    // Not only in a minute: until it is answered, the page says that order flow is not.
    if (!items) return this.refresh();
    if (!items.length) return;
    this.minutes.confirm(items);
    this.#changed(this);
  }

  async reachBackTo(time) {
    const { oldest } = this.minutes;
    const isNeeded = this.hasLoaded && !this.isComplete && oldest !== undefined && time < oldest;
    if (!isNeeded || this.isReachingBack || this.#pages >= MOST_PAGES) return;
    this.isReachingBack = true;
    this.#pages += 1;
    const items = await persist(() => this.#ask({ end: oldest * 1000, limit: MOST }), () => this.minutes.oldest === oldest);
    this.isReachingBack = false;
    if (!items || this.minutes.oldest !== oldest) return;
    this.isComplete = items.length < MOST;
    this.minutes.confirm(items);
    this.#changed(this);
  }

  /** In bars of `seconds`, without the first one while minutes of it are missing. */
  bars(seconds) {
    const bars = this.minutes.bars(seconds);
    const isCut = !this.isComplete && bars.length > 1 && this.minutes.oldest > bars[0].time;
    return isCut ? bars.slice(1) : bars;
  }

  async #ask(query) {
    try {
      const { items } = await this.#api.get(`orderflow/${this.symbol}`, query);
      this.#fail(null);
      return items;
    } catch (error) {
      this.#fail(error instanceof Failure ? error.message : "The service is not responding.");
      throw error;
    }
  }

  #fail(failure) {
    if (this.failure === failure) return;
    this.failure = failure;
    this.#changed(this);
  }
}

/** Calls shortly after each minute has closed. Returns a function that stops it. */
export function eachMinute(act) {
  let timer;
  const plan = () => {
    timer = setTimeout(() => {
      if (!document.hidden) act();
      plan();
    }, MINUTE_MS - ((Date.now() - CLOSED_MS) % MINUTE_MS));
  };
  plan();
  return () => clearTimeout(timer);
}
