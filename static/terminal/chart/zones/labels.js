// Finds room for labels: none may cover a candle, a mark or another label. One without room is left out.

const GAP = 6;
const STEP = 6;
const STEPS = 16;
const AIR = 2;

const meets = (one, other) =>
  one.x < other.x + other.width + AIR &&
  other.x < one.x + one.width + AIR &&
  one.y < other.y + other.height + AIR &&
  other.y < one.y + one.height + AIR;

/** `wanted` have a size and an anchor, above or below which they should stand; the first ones choose first. */
export function placeLabels(wanted, obstacles, area) {
  const placed = [];
  for (const label of wanted) {
    const box = roomFor(label, [...obstacles, ...placed], area);
    if (box) placed.push({ ...label, ...box });
  }
  return placed;
}

function roomFor(label, taken, area) {
  const columns = shiftsOf(label).map((shift) => {
    const x = Math.min(Math.max(label.anchor.x + shift, area.x), area.x + area.width - label.width);
    const strip = { x, y: area.y, width: label.width, height: area.height };
    return { x, near: taken.filter((each) => meets(strip, each)) };
  });
  for (let step = 0; step < STEPS; step += 1) {
    for (const isAbove of [label.isAbove, !label.isAbove]) {
      const away = GAP + step * STEP;
      const y = isAbove ? label.anchor.y - away - label.height : label.anchor.y + away;
      if (y < area.y || y + label.height > area.y + area.height) continue;
      const free = columns.find(({ x, near }) => isFree({ x, y, width: label.width, height: label.height }, near));
      if (free) return { x: free.x, y };
    }
  }
  return null;
}

/** Above or below its anchor, beside it, or next to another one there; as far to the side as its `spread`, if it has one. */
function shiftsOf({ width, spread = 0 }) {
  const shifts = [-width / 2, GAP, -width - GAP, width / 2 + GAP, -1.5 * width - GAP];
  for (let away = STEP; away <= spread; away += STEP) shifts.push(away - width / 2, -away - width / 2);
  return shifts;
}

const isFree = (box, near) => !near.some((each) => meets(box, each));
