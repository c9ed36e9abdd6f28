// The last hours of a price as a line, and where it stands within its day.
const WIDTH = 64;
const HEIGHT = 20;
const REDRAWN_MS = 500;

export function lineOf(closes) {
  if (closes.length < 2) return "";
  const [low, high] = [Math.min(...closes), Math.max(...closes)];
  const x = (at) => ((WIDTH * at) / (closes.length - 1)).toFixed(1);
  const y = (close) => (high === low ? HEIGHT / 2 : 1 + ((HEIGHT - 2) * (high - close)) / (high - low)).toFixed(1);
  return `M${closes.map((close, at) => `${x(at)} ${y(close)}`).join("L")}`;
}

/** In percent of the way from the low to the high. */
export const placeIn = (low, high, value) => (high === low ? 50 : Math.min(100, Math.max(0, (100 * (value - low)) / (high - low))));

/** Draws all changes in one frame, and not often, because a line of hours moves slowly. */
export class Painter {
  #due = new Set();
  #timer;

  ask(row) {
    this.#due.add(row);
    this.#timer ??= setTimeout(() => requestAnimationFrame(() => this.#paint()), REDRAWN_MS);
  }

  #paint() {
    this.#timer = undefined;
    for (const row of this.#due) row.draw();
    this.#due.clear();
  }
}
