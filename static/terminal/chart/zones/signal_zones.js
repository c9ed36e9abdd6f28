// Signals among the candles: from what was paid to the stop in the colour of risk, to the target in that of reward.
import { Crowd } from "./crowd.js";
import { paintLabels, paintMarks, paintTip, paintZones } from "./painting.js";
import { shapesOf } from "./shapes.js";

const MARK = 10;
// Where candles are narrower than this, one box is around several.
const LEAST_BOX = 3;

export class SignalZones {
  #views;
  #crowd = new Crowd();

  constructor(chart) {
    Object.assign(this, { chart, signals: [], shapes: [], highlighted: null, under: null, wanted: null });
    this.#views = [this.#view("bottom", (size) => this.#paintBelow(size)), this.#view("top", (size) => this.#paintAbove(size))];
    chart.candles.attachPrimitive(this);
    chart.chart.subscribeCrosshairMove(({ point, paneIndex }) => this.#point(paneIndex ? undefined : point));
    // A finger that taps moves no crosshair.
    chart.chart.subscribeClick(({ point, paneIndex }) => this.#point(paneIndex ? undefined : point));
  }

  /** Of the instrument that is shown. `wanted` brings one of them into sight, if the user picked it. */
  draw(signals) {
    this.signals = signals;
    this.wanted?.();
    this.update?.();
  }

  paint() {
    this.update?.();
  }

  replaced() {
    this.under = null;
  }

  get labels() {
    return this.#crowd.placed;
  }

  /** What is pointed at says all of itself. */
  #point(point) {
    const found = this.#crowd.at(point, this.shapes);
    if (found?.ids.join() === this.under?.ids.join()) return;
    this.under = found;
    this.update?.();
  }

  /** One stands out and the others step back; without an id none does. */
  highlight(id = null) {
    if (this.highlighted === id) return;
    this.highlighted = id;
    this.update?.();
  }

  /** The one that stands out, if it is in sight: otherwise none steps back. */
  get lit() {
    const id = this.under?.ids.length === 1 ? this.under.ids[0] : this.highlighted;
    return this.shapes.some((shape) => shape.id === id) ? id : null;
  }

  /* What the library asks of a primitive. */

  attached({ requestUpdate }) {
    this.update = requestUpdate;
  }

  paneViews() {
    return this.#views;
  }

  /** All of a zone that stands out is to be seen. */
  autoscaleInfo() {
    const shape = this.shapes.find(({ id }) => id === this.highlighted);
    if (!shape) return null;
    const levels = [shape.paid, shape.stop, shape.target];
    return { priceRange: { minValue: Math.min(...levels), maxValue: Math.max(...levels) } };
  }

  #view(zOrder, paint) {
    const draw = (target) => target.useMediaCoordinateSpace(({ context, mediaSize }) => paint({ context, ...mediaSize }));
    return { zOrder: () => zOrder, renderer: () => ({ draw }) };
  }

  #paintBelow({ context, width, height }) {
    this.#arrange(width, height);
    paintZones(context, this.shapes, this);
  }

  #paintAbove({ context }) {
    paintMarks(context, this.shapes, this);
    paintLabels(context, this.labels, this);
    const tip = this.under && this.#crowd.tip(this.under, this.shapes);
    if (tip) paintTip(context, tip, this);
  }

  get tint() {
    return this.chart.tint;
  }

  get font() {
    const { fontFamily } = this.chart.chart.options().layout;
    return `500 11px ${fontFamily}`;
  }

  #arrange(width, height) {
    const { bars, chart, candles } = this.chart;
    const scale = chart.timeScale();
    const range = scale.getVisibleLogicalRange();
    const spacing = scale.options().barSpacing;
    if (!range || !bars.length) {
      this.shapes = [];
      this.#crowd.placed = [];
      return;
    }
    const x = (index) => scale.logicalToCoordinate(index);
    const y = (price) => candles.priceToCoordinate(price);
    const stacked = new Map();
    this.shapes = shapesOf(this.signals, bars, range).map((shape) => placed(shape, bars, { x, y, spacing, width, stacked }));
    const seen = { from: Math.max(0, Math.floor(range.from)), to: Math.min(bars.length, Math.ceil(range.to) + 1) };
    const obstacles = [...candleBoxes(bars, seen, { x, y, spacing }), ...this.shapes.flatMap(({ marks }) => marks)];
    const last = y(bars.at(-1).close);
    if (last !== null) obstacles.push({ x: 0, y: last - 1, width, height: 2 });
    const top = this.chart.headroom;
    const area = { x: 2, y: top, width: width - 4, height: height - top - 2 };
    this.#crowd.arrange(this.shapes, obstacles, area, this);
  }
}

/** With its places on the screen: the arrow at its entry, pointing the way that it was meant to go, and its exit. */
function placed(shape, bars, { x, y, spacing, width, stacked }) {
  const { start, end, isBuy, isOver } = shape;
  const left = start < 0 ? 0 : x(start) - spacing / 2;
  const right = Math.min(width, x(end) + spacing / 2);
  const levels = { paidY: y(shape.paid), stopY: y(shape.stop), targetY: y(shape.target) };
  // What began out of sight and goes on behind everything would dye the whole pane.
  const isBackground = start < 0 || (left <= 0 && right > width / 2);
  const found = { ...shape, ...levels, left, right, isBackground, marks: [], arrow: null, out: null, anchor: null };
  if (start >= 0) {
    const key = `${start} ${isBuy}`;
    const before = stacked.get(key) ?? 0;
    stacked.set(key, before + 1);
    const edge = isBuy ? y(bars[start].low) + 4 + before * (MARK + 2) : y(bars[start].high) - 4 - MARK - before * (MARK + 2);
    found.arrow = { x: x(start) - MARK / 2, y: edge, width: MARK, height: MARK };
    found.anchor = { x: x(start), y: isBuy ? edge + MARK : edge };
    found.marks.push(found.arrow);
  }
  if (isOver && end >= 0) {
    found.out = { x: x(end) - MARK / 2, y: y(shape.exit) - MARK / 2, width: MARK, height: MARK };
    found.marks.push(found.out);
  }
  return found;
}

function candleBoxes(bars, { from, to }, { x, y, spacing }) {
  const boxes = [];
  const step = Math.max(1, Math.ceil(LEAST_BOX / spacing));
  for (let at = from; at < to; at += step) {
    let { high, low } = bars[at];
    for (let next = at + 1; next < Math.min(at + step, to); next += 1) {
      high = Math.max(high, bars[next].high);
      low = Math.min(low, bars[next].low);
    }
    const [top, bottom] = [y(high), y(low)];
    boxes.push({ x: x(at) - spacing / 2, y: top, width: step * spacing, height: bottom - top });
  }
  return boxes;
}
