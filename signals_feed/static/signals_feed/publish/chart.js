// Candles of one instrument with the levels of the signal that is being written, as SVG.
import { price } from "../../terminal/format.js";

const SVG = "http://www.w3.org/2000/svg";
const BARS = 96;
const GUTTER = 86;
const EDGE = 12;
const LABEL_HEIGHT = 15;
const TICKS = 6;
const AXIS = 20;
const LABEL_WIDTH = 64;
const ROUND = [1, 2, 5, 10];
const HOUR_MS = 3_600_000;
// How far apart the times on the axis are, for candles of each timeframe.
const APART = { "5m": HOUR_MS, "15m": 2 * HOUR_MS, "1h": 24 * HOUR_MS, "4h": 72 * HOUR_MS };
const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", timeZone: "UTC" });
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });

export class LevelsChart {
  #bars = [];
  #levels = {};
  #now = null;
  #digits = 5;

  constructor(svg, ask) {
    this.svg = svg;
    this.ask = ask;
    new ResizeObserver(() => this.draw()).observe(svg);
  }

  /** The candles of another instrument or timeframe; none of those before stays under its name. */
  async show(symbol, timeframe) {
    const wanted = (this.wanted = {});
    if (symbol !== this.symbol) this.#bars = [];
    this.symbol = symbol;
    this.draw();
    // Nothing is offered.
    if (!symbol) return;
    const market = await this.ask(`market/${encodeURIComponent(symbol)}`, { timeframe, bars: BARS });
    if (this.wanted !== wanted) return;
    this.#bars = market.ohlcv;
    this.apart = APART[timeframe] ?? 24 * HOUR_MS;
    this.draw();
  }

  setQuote(bid, digits) {
    this.#now = bid;
    this.#digits = digits;
    const last = this.#bars.at(-1);
    if (last) Object.assign(last, { close: bid, high: Math.max(last.high, bid), low: Math.min(last.low, bid) });
    this.draw();
  }

  setLevels(levels) {
    this.#levels = levels;
    this.draw();
  }

  draw() {
    const { width, height: whole } = this.svg.getBoundingClientRect();
    if (!width || !whole) return;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${whole}`);
    const height = whole - AXIS;
    const prices = this.#range();
    if (!prices) return this.svg.replaceChildren();
    const [low, high] = prices;
    const y = (price) => EDGE + ((high - price) / (high - low)) * (height - 2 * EDGE);
    const right = width - GUTTER;
    const labels = this.#labels(y, height);
    this.svg.replaceChildren(...this.#grid(low, high, y, right, labels), ...this.#times(right, height), ...this.#zones(y, right, height), ...this.#candles(y, right), ...this.#lines(right, labels));
  }

  /** That of the candles, and the levels near enough not to flatten them. */
  #range() {
    const known = this.#bars.flatMap(({ low, high }) => [low, high]);
    if (this.#now) known.push(this.#now);
    if (!known.length) return null;
    const [low, high] = [Math.min(...known), Math.max(...known)];
    const span = high - low || high * 0.001;
    const near = Object.values(this.#levels).filter((price) => price && price > low - 2 * span && price < high + 2 * span);
    return [Math.max(0, Math.min(low, ...near) - span * 0.02), Math.max(high, ...near) + span * 0.02];
  }

  /** A price of the grid is left out where a level stands. */
  #grid(low, high, y, right, labels) {
    return roundPrices(low, high).flatMap((price) => {
      const at = y(price);
      const isFree = labels.every(({ shown }) => Math.abs(shown - at) > LABEL_HEIGHT);
      const text = isFree ? [part("text", { x: right + 6, y: at + 4 }, this.#text(price))] : [];
      return [part("line", { class: "grid", x1: 0, x2: right, y1: at, y2: at }), ...text];
    });
  }

  /** Where an hour or a day begins; those that would meet are left out. */
  #times(right, height) {
    const step = right / BARS;
    const first = right - step * this.#bars.length;
    const begins = (at) => Math.floor(Date.parse(this.#bars[at].time) / this.apart);
    let free = 0;
    const marks = this.#bars.flatMap(({ time }, at) => {
      const x = first + step * (at + 0.5);
      if (!at || begins(at) === begins(at - 1) || x - LABEL_WIDTH / 2 < free || x + LABEL_WIDTH / 2 > right) return [];
      free = x + LABEL_WIDTH / 2;
      return [part("line", { class: "grid", x1: x, x2: x, y1: 0, y2: height }), part("text", { class: "time", x, y: height + 15, "text-anchor": "middle" }, timeText(time, this.apart))];
    });
    return [...marks, part("text", { class: "time", x: right + 6, y: height + 15 }, "UTC")];
  }

  #zones(y, right, height) {
    const { entry, stop, target } = this.#levels;
    // On the same side of the entry, one of them is wrong.
    if (!entry || (stop && target && stop > entry === target > entry)) return [];
    const zone = (name, price) => {
      const [top, bottom] = [Math.max(price, entry), Math.min(price, entry)].map((edge) => Math.min(Math.max(y(edge), 0), height));
      return part("rect", { class: name, x: right * 0.66, width: right * 0.34, y: top, height: bottom - top });
    };
    return [...(stop ? [zone("risk", stop)] : []), ...(target ? [zone("reward", target)] : [])];
  }

  #candles(y, right) {
    const step = right / BARS;
    const first = right - step * this.#bars.length;
    return this.#bars.flatMap(({ open, high, low, close }, at) => {
      const tone = close < open ? "down" : "up";
      const x = first + step * (at + 0.5);
      const [top, bottom] = [y(Math.max(open, close)), y(Math.min(open, close))];
      const body = { class: tone, x: x - step * 0.35, width: step * 0.7, y: top, height: Math.max(1, bottom - top), "stroke-width": 0 };
      return [part("line", { class: tone, x1: x, x2: x, y1: y(high), y2: y(low) }), part("rect", body)];
    });
  }

  /** Each level with the place of its price at the right; those that would meet are moved apart. An arrow leads to one off the scale. */
  #labels(y, height) {
    const levels = Object.entries({ now: this.#now, ...this.#levels }).filter(([, price]) => price);
    const away = (at) => (at < 0 ? "↑ " : at > height ? "↓ " : "");
    const labels = levels.map(([name, price]) => ({ name, price, at: y(price), away: away(y(price)) })).sort((one, other) => one.at - other.at);
    let lowest = -Infinity;
    for (const label of labels) lowest = label.shown = Math.max(Math.min(Math.max(label.at, EDGE), height - EDGE), lowest + LABEL_HEIGHT);
    const over = Math.max(0, lowest - (height - EDGE));
    for (const label of labels) label.shown -= over;
    return labels;
  }

  #lines(right, labels) {
    return labels.flatMap(({ name, price, at, shown, away }) => [
      ...(away ? [] : [part("line", { class: `level ${name}`, x1: 0, x2: right, y1: at, y2: at })]),
      part("text", { class: `label ${name}`, x: right + 6, y: shown + 4 }, away + this.#text(price)),
    ]);
  }

  #text(value) {
    return price(value, this.#digits);
  }
}

/** 1.0840, 1.0860, …: as many as fit, and never an odd step. */
export function roundPrices(low, high) {
  const least = (high - low) / TICKS;
  const size = 10 ** Math.floor(Math.log10(least));
  const step = size * ROUND.find((each) => each * size >= least * 0.999);
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, at) => (first + at) * step);
}

function timeText(time, apart) {
  const at = new Date(time);
  return apart >= 24 * HOUR_MS || (at.getUTCHours() === 0 && at.getUTCMinutes() === 0) ? DAY.format(at) : CLOCK.format(at);
}

function part(name, attributes, text) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text) element.textContent = text;
  return element;
}
