// The labels of zones: which are wanted, where there is room, and the text for those that have none.
import { signed } from "../../format.js";
import { placeLabels } from "./labels.js";

const LABEL_HEIGHT = 18;
const PADDING = 6;
const LABELLED = 12;
// Labels that are nearer than this are neighbours.
const NEAR = 160;
const MOST_LINES = 8;
const REACH = 4;

export class Crowd {
  #widths = new Map();

  constructor() {
    this.pen = document.createElement("canvas").getContext("2d");
    this.placed = [];
  }

  /** The one that stands out chooses first, then those that began in sight. */
  arrange(shapes, obstacles, area, { font, highlighted }) {
    this.area = area;
    if (font !== this.font) this.#widths.clear();
    this.pen.font = this.font = font;
    const rank = ({ id, isPinned }) => (id === highlighted ? 0 : isPinned ? 2 : 1);
    const wanted = shapes
      .map((shape) => anchored(shape, area))
      .filter(Boolean)
      .sort((one, other) => rank(one) - rank(other))
      .map((label) => ({ ...label, ...this.#sizeOf(label.text) }));
    const single = placeLabels(wanted.slice(0, LABELLED), obstacles, area);
    const named = new Set(single.map(({ id }) => id));
    const rest = neighbours(wanted.filter(({ id }) => !named.has(id))).map((labels) => this.#together(labels));
    this.placed = [...single, ...placeLabels(rest, [...obstacles, ...single], area)];
  }

  #together(labels) {
    const { anchor, isAbove } = labels[labels.length >> 1];
    const text = `${labels.length} more`;
    return { id: null, ids: labels.map(({ id }) => id), text, outcome: "even", anchor, isAbove, spread: NEAR, ...this.#sizeOf(text) };
  }

  #sizeOf(text) {
    if (!this.#widths.has(text)) this.#widths.set(text, Math.ceil(this.pen.measureText(text).width) + 2 * PADDING);
    return { width: this.#widths.get(text), height: LABEL_HEIGHT };
  }

  /** What is at a point: the box of a label or a mark, and which signals it is about. */
  at(point, shapes) {
    if (!point) return null;
    const label = this.placed.find((box) => holds(box, point, 0));
    if (label) return { box: label, ids: label.ids ?? [label.id] };
    for (const { id, marks } of shapes) {
      const box = marks.find((mark) => holds(mark, point, REACH));
      if (box) return { box, ids: [id] };
    }
    return null;
  }

  /** The words that have no label of their own, in a box beside what is pointed at; null if all of them have one. */
  tip({ box, ids }, shapes) {
    const named = new Set(this.placed.map(({ id }) => id));
    const texts = shapes.filter(({ id }) => ids.includes(id) && !named.has(id)).map(({ signal }) => textOf(signal));
    if (!texts.length) return null;
    const lines = texts.slice(0, MOST_LINES);
    if (texts.length > lines.length) lines.push(`and ${texts.length - lines.length} more`);
    const width = Math.max(...lines.map((text) => this.#sizeOf(text).width));
    const height = lines.length * LABEL_HEIGHT + PADDING;
    const { area } = this;
    const below = box.y + box.height + REACH;
    const y = below + height <= area.y + area.height ? below : Math.max(area.y, box.y - REACH - height);
    return { lines, x: within(box.x, area.x, area.x + area.width - width), y, width, height, lineHeight: LABEL_HEIGHT };
  }
}

/** The label at its arrow, or at the edge of the pane if the zone began before what is in sight. */
function anchored({ id, signal, isBuy, outcome, anchor, left, right, paidY }, area) {
  if (paidY === null || right <= area.x || left >= area.x + area.width) return null;
  const isPinned = !anchor || anchor.x < area.x;
  const at = isPinned ? { x: area.x, y: paidY } : anchor;
  if (at.x > area.x + area.width) return null;
  const y = within(at.y, area.y, area.y + area.height);
  const text = isPinned ? `‹ ${textOf(signal)}` : textOf(signal);
  return { id, text, outcome, isPinned, anchor: { x: at.x, y }, isAbove: !isBuy };
}

/** From left to right. */
function neighbours(labels) {
  const groups = [];
  for (const label of labels.toSorted((one, other) => one.anchor.x - other.anchor.x)) {
    const last = groups.at(-1);
    if (last && label.anchor.x - last[0].anchor.x < NEAR) last.push(label);
    else groups.push([label]);
  }
  return groups;
}

function textOf({ direction, user, status, isUnfilled, pnl_r: gain }) {
  const what = `${direction === "buy" ? "Buy" : "Sell"} ${user.length > 20 ? `${user.slice(0, 19)}…` : user}`;
  if (isUnfilled) return `${what} unfilled`;
  return status === "closed" ? `${what} ${signed(gain, 2)} R` : what;
}

const within = (value, least, most) => Math.max(least, Math.min(value, most));

const holds = ({ x, y, width, height }, point, reach) =>
  point.x >= x - reach && point.x <= x + width + reach && point.y >= y - reach && point.y <= y + height + reach;
