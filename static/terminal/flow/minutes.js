// The order flow of one instrument, minute by minute: closed minutes as the service summed them up, and what has
// come live since.
import { indexAt } from "../chart/zones/shapes.js";

const MINUTE_S = 60;
const DAY_S = 86_400;
// Sums of decimals gain spurious digits.
const exact = (value) => Number(value.toFixed(8));
const dayOf = (time) => Math.floor(time / DAY_S);
const bucketOf = (time, seconds) => Math.floor(time / seconds) * seconds;

export class FlowMinutes {
  #minutes = [];
  #isJoining = true;

  get oldest() {
    return this.#minutes[0]?.time;
  }

  /** When the last final minute opened. */
  get confirmed() {
    return this.#minutes.findLast(({ isClosed }) => isClosed)?.time;
  }

  /** The newest minute in which something was absorbed. */
  get absorbed() {
    return this.#minutes.findLast(({ absorptions }) => absorptions)?.time;
  }

  get isEmpty() {
    return this.#minutes.length === 0;
  }

  /** Minutes as REST has them. They replace what the stream sent before they closed. */
  confirm(items) {
    if (!items.length) return;
    const known = new Map(this.#minutes.map((minute) => [minute.time, minute]));
    for (const { time, bid_volume: sold, ask_volume: bought, cumulative_delta: sum, absorptions } of items) {
      const at = Date.parse(time) / 1000;
      known.set(at, { time: at, sold, bought, sum, absorptions, isClosed: true, isWhole: true });
    }
    this.#minutes = [...known.values()].sort((one, other) => one.time - other.time);
  }

  /** The newest minutes, which do not reach back to what is known: a hole would look like a pause. */
  restart(items) {
    this.#minutes = this.#minutes.filter(({ time }) => time * 1000 > Date.parse(items[0].time));
    this.confirm(items);
  }

  /** A frame of the stream. Returns whether it belongs to a minute that is still open. */
  take({ time: ms, bid_volume: sold, ask_volume: bought, cumulative_delta: sum }) {
    const minute = this.#minuteAt(bucketOf(ms / 1000, MINUTE_S));
    if (!minute) return false;
    minute.sold = exact(minute.sold + sold);
    minute.bought = exact(minute.bought + bought);
    minute.sum = sum;
    return true;
  }

  /** An absorption is reported when its window ends, which may be the moment at which the next minute begins. */
  absorb(ms) {
    const minute = this.#minutes.at(-1);
    const time = bucketOf((ms - 1) / 1000, MINUTE_S);
    const found = minute?.time === time ? minute : this.#minutes.at(-2);
    if (found?.time === time && !found.isClosed) found.absorptions += 1;
  }

  /** Frames were lost, or the stream was closed: of the current minute only the running sum is certain. */
  miss() {
    this.#isJoining = true;
    const last = this.#minutes.at(-1);
    if (last && !last.isClosed) last.isWhole = false;
  }

  #minuteAt(time) {
    const last = this.#minutes.at(-1);
    if (last && time < last.time) return null;
    if (last?.time === time) return last.isClosed ? null : last;
    // What came before the first frame is unknown.
    const isWhole = !this.#isJoining;
    this.#isJoining = false;
    this.#minutes.push({ time, sold: 0, bought: 0, sum: 0, absorptions: 0, isClosed: false, isWhole });
    return this.#minutes.at(-1);
  }

  /** The minutes, summed up in bars of `seconds`. */
  bars(seconds) {
    const bars = [];
    for (const [at, minute] of this.#minutes.entries()) {
      const time = bucketOf(minute.time, seconds);
      if (bars.at(-1)?.time !== time) bars.push(emptyBar(time));
      this.#add(bars.at(-1), at);
    }
    return bars;
  }

  /** Only the last of them, because a frame changes no other. */
  lastBar(seconds) {
    if (this.isEmpty) return null;
    const bar = emptyBar(bucketOf(this.#minutes.at(-1).time, seconds));
    const first = this.#minutes.findLastIndex(({ time }) => time < bar.time) + 1;
    for (let at = first; at < this.#minutes.length; at += 1) this.#add(bar, at);
    return bar;
  }

  #add(bar, at) {
    const minute = this.#minutes[at];
    bar.delta = exact(bar.delta + this.#deltaOf(at));
    bar.sold = exact(bar.sold + minute.sold);
    bar.bought = exact(bar.bought + minute.bought);
    bar.sum = minute.sum;
    bar.absorptions += minute.absorptions;
    bar.isWhole &&= minute.isWhole;
  }

  /** In an open minute that is older than the page, the running sums contain what the page has missed. */
  #deltaOf(at) {
    const minute = this.#minutes[at];
    const before = this.#minutes[at - 1];
    if (minute.isWhole || !before) return exact(minute.bought - minute.sold);
    return exact(minute.sum - (dayOf(before.time) === dayOf(minute.time) ? before.sum : 0));
  }
}

/** What is known before and after a stretch of time in which no bar is; null if one is. */
export function around(bars, { from, to }) {
  const at = indexAt(bars, to);
  if (at >= 0 && bars[at].time >= from) return null;
  return { before: bars[at], after: bars[at + 1] };
}

const emptyBar = (time) => ({ time, delta: 0, sold: 0, bought: 0, sum: 0, absorptions: 0, isWhole: true });
