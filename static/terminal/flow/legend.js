// The texts of the order flow pane: units, the bar under the pointer, and why nothing moves.
import { closing } from "../chart/tools/menu.js";
import { timeIn } from "../chart/zone.js";
import { price, signed, write } from "../format.js";
import { statusOf } from "../page/connection.js";
import { CAUSES } from "../page/outage.js";

const BEAT_MS = 1_000;
const DAY_S = 86_400;
const COMING = "Loading older order flow…";
const NAMES = { 60: "1m", 300: "5m", 900: "15m", 3600: "1h", 14_400: "4h", 86_400: "1d" };
// Ticks are whole. Of volumes as many as the service has, or bought less sold is not the delta beside them.
const DIGITS = { true: 3, false: 0 };

export class FlowLegend {
  /** `zone` answers the time zone that was chosen, `goBack` brings known order flow into view, `trading` says why no prices come. */
  constructor(pane, { trading, zone, goBack }) {
    Object.assign(this, { pane, trading, zone, stream: null });
    this.parts = Object.fromEntries([...pane.querySelectorAll("[data-part]")].map((part) => [part.dataset.part, part]));
    this.parts.back.addEventListener("click", goBack);
    closing(this.parts.explanation);
    setInterval(() => document.hidden || this.beat(), BEAT_MS);
  }

  begin(symbol, facts) {
    Object.assign(this, { symbol, facts, digits: DIGITS[facts.hasTrades], heard: null });
    for (const part of [this.parts.unit, this.parts.meaning]) write(part, part.dataset[facts.hasTrades ? "traded" : "ticks"]);
    this.beat();
  }

  streamIs(state) {
    this.stream = state;
    this.beat();
  }

  /** Whether it is closed, stale or cut off. */
  beat() {
    if (!this.facts) return;
    const { words } = this.trading;
    write(this.parts.trading, words ? `${words}.` : streamWords(this.stream));
  }

  /** The numbers of one bar, each beside the scale that it is read on; of none, that it has none. */
  show(bar, seconds) {
    const { parts, digits } = this;
    const isDaily = seconds >= DAY_S;
    const opened = bar ? timeIn(this.zone(), bar.time, isDaily) : "";
    write(parts.per, `per ${NAMES[seconds]} bar`);
    figure(parts.delta, bar?.delta, digits);
    write(parts.volumes, bar?.isWhole ? `bought ${price(bar.bought, digits)}, sold ${price(bar.sold, digits)}` : "");
    write(parts.opened, opened);
    parts.running.hidden = isDaily;
    figure(parts.sum, bar?.sum, digits);
    write(parts.since, bar ? `since ${timeIn(this.zone(), bar.time - (bar.time % DAY_S))}` : "");
    if (bar) this.#describe(bar, opened, isDaily);
  }

  /** For screen readers. */
  #describe({ delta, sum, absorptions }, opened, isDaily) {
    const running = isDaily ? "" : `, cumulative delta ${signed(sum, this.digits)} ${this.parts.since.textContent}`;
    const absorbed = absorptions ? `, ${absorptions} × absorption` : "";
    write(this.parts.caption, `Order flow of ${this.symbol}, ${opened}: delta ${signed(delta, this.digits)}${running}${absorbed}.`);
  }

  absorb(absorption) {
    this.heard = absorption;
    this.#tellAbsorption();
  }

  /** Live ticks are more exact than the sums of the service. */
  #tellAbsorption(minutes) {
    write(this.parts.absorption, this.heard ? this.#wordsOf(this.heard) : lastWords(minutes, this.zone()));
  }

  #wordsOf({ time, side, price: at, volume, strength }) {
    const who = side === "bid" ? "Buyers absorbed selling" : "Sellers absorbed buying";
    const much = price(volume, this.digits);
    return `${timeIn(this.zone(), time / 1000)}: ${who} at ${price(at, this.facts.digits)} (${this.facts.hasTrades ? `volume ${much}` : `${much} ticks`}, strength ${strength.toFixed(1)}).`;
  }

  /** What stands where no bars can, or no bars are in view; `since`, where the first one of all is. */
  tell(history, gap, since) {
    const { hasLoaded, failure, minutes } = history;
    const isBare = minutes.isEmpty;
    this.parts.canvas.classList.toggle("skeleton", isBare && !hasLoaded && !failure);
    const isOlderComing = Boolean(gap && !gap.before && history.isReachingBack);
    const words = isBare ? this.#absence(history) : gap ? gapWords(gap, isOlderComing, this.zone()) : "";
    write(this.parts.state, words);
    this.parts.back.hidden = !gap || isOlderComing;
    this.pane.classList.toggle("bare", Boolean(words));
    const isCut = !words && since !== undefined;
    write(this.parts.known, isCut ? (history.isReachingBack ? COMING : `Known since ${timeIn(this.zone(), since)}.`) : "");
    if (isBare) write(this.parts.caption, words || `Order flow of ${this.symbol}: loading.`);
    this.#tellAbsorption(minutes);
  }

  #absence({ hasLoaded, failure }) {
    if (failure) return `The order flow of ${this.symbol} could not be loaded. ${failure} Trying again…`;
    return hasLoaded ? `${this.symbol} has no order flow yet. It is computed from live prices, minute by minute.` : "";
  }

  /** The title of the lower scale stands at its top, wherever that is; what covers the scales leaves the axis of time. */
  place(chart) {
    this.parts.running.style.setProperty("top", `${chart.panes()[0].getHeight() + 1}px`);
    this.parts.cover.style.setProperty("bottom", `${chart.timeScale().height()}px`);
  }
}

function lastWords({ absorbed, oldest }, zone) {
  if (oldest === undefined) return "";
  return absorbed === undefined ? `No absorption since ${timeIn(zone, oldest)}.` : `Latest absorption at ${timeIn(zone, absorbed)}.`;
}

function gapWords({ before, after }, isOlderComing, zone) {
  if (isOlderComing) return COMING;
  if (!before) return `Order flow is known since ${timeIn(zone, after.time)}.`;
  if (!after) return `Order flow is known until ${timeIn(zone, before.time)}.`;
  return `No order flow is known between ${timeIn(zone, before.time)} and ${timeIn(zone, after.time)}.`;
}

function streamWords(state) {
  if (state?.status === "refused") return `Not live: ${state.message || CAUSES.refused} Closed minutes are still updated.`;
  return state ? (CAUSES[statusOf(state)] ?? "") : "";
}

function figure(element, value, digits) {
  write(element, value === undefined ? "–" : signed(value, digits));
  element.className = `phrase ${value < 0 ? "down" : value > 0 ? "up" : ""}`.trim();
}
