// Draws zones, marks and labels on the canvas of the chart.

const FILL = 0.32;
const FADED = 0.1;
const STRONG = 0.6;
const ROUND = 4;
// Further away, a line leads from a label to its arrow.
const NEAR = 12;

function shareOf({ id, isBackground }, lit) {
  if (lit !== null) return id === lit ? STRONG : FADED;
  return isBackground ? FADED : FILL;
}

function colourOf(outcome, tint) {
  return { won: tint.up, lost: tint.down, even: tint.soft, active: tint.accent }[outcome];
}

export function paintZones(context, shapes, { tint, lit }) {
  // The newest come first, and lie above the others.
  for (const shape of shapes.toReversed()) {
    const { left, right, paidY, stopY, targetY } = shape;
    if (right <= left || paidY === null) continue;
    context.globalAlpha = shareOf(shape, lit);
    fill(context, tint.downSoft, left, paidY, right, stopY);
    fill(context, tint.upSoft, left, paidY, right, targetY);
    context.globalAlpha = lit === null || shape.id === lit ? 1 : 0.35;
    line(context, tint.accent, [left, paidY], [right, paidY]);
    if (shape.id === lit) {
      line(context, tint.down, [left, stopY], [right, stopY]);
      line(context, tint.up, [left, targetY], [right, targetY]);
    }
  }
  context.globalAlpha = 1;
}

export function paintMarks(context, shapes, { tint, lit }) {
  for (const { id, arrow, out, outcome, isBuy, paidY } of shapes) {
    context.globalAlpha = lit === null || id === lit ? 1 : 0.4;
    const colour = colourOf(outcome, tint);
    if (arrow && out) line(context, colour, [arrow.x + arrow.width / 2, paidY], [out.x + out.width / 2, out.y + out.height / 2], [4, 3]);
    if (arrow) triangle(context, colour, arrow, isBuy);
    if (out) ring(context, colour, tint.surface, out);
  }
  context.globalAlpha = 1;
}

export function paintLabels(context, labels, { tint, lit, font }) {
  context.font = font;
  context.textBaseline = "middle";
  context.textAlign = "center";
  for (const { id, outcome, isPinned, x, y, width, height, anchor } of labels) {
    const [footX, footY] = [Math.min(Math.max(anchor.x, x + ROUND), x + width - ROUND), y > anchor.y ? y : y + height];
    context.globalAlpha = lit === null || id === lit ? 0.6 : 0.25;
    if (!isPinned && Math.hypot(footX - anchor.x, footY - anchor.y) > NEAR) line(context, colourOf(outcome, tint), [anchor.x, anchor.y], [footX, footY]);
  }
  for (const { id, text, outcome, x, y, width, height } of labels) {
    const colour = colourOf(outcome, tint);
    context.globalAlpha = lit === null || id === lit ? 1 : 0.4;
    box(context, tint.surface, colour, { x, y, width, height });
    context.fillStyle = colour;
    context.fillText(text, x + width / 2, y + height / 2 + 0.5);
  }
  context.globalAlpha = 1;
}

/** Over everything, as long as something is pointed at. */
export function paintTip(context, { lines, lineHeight, ...tip }, { tint, font }) {
  context.font = font;
  context.textBaseline = "middle";
  context.textAlign = "left";
  box(context, tint.surface, tint.soft, tip);
  context.fillStyle = tint.text;
  const inset = (tip.height - lines.length * lineHeight) / 2;
  lines.forEach((text, at) => context.fillText(text, tip.x + 6, tip.y + inset + (at + 0.5) * lineHeight));
}

function box(context, inside, edge, { x, y, width, height }) {
  context.beginPath();
  context.roundRect(x + 0.5, y + 0.5, width - 1, height - 1, ROUND);
  context.fillStyle = inside;
  context.strokeStyle = edge;
  context.lineWidth = 1;
  context.fill();
  context.stroke();
}

function fill(context, colour, left, from, right, to) {
  if (to === null) return;
  context.fillStyle = colour;
  context.fillRect(left, Math.min(from, to), right - left, Math.abs(to - from));
}

function line(context, colour, [x, y], [toX, toY], dashes = []) {
  if (y === null || toY === null) return;
  context.save();
  context.setLineDash(dashes);
  context.strokeStyle = colour;
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(x, Math.round(y) + 0.5);
  context.lineTo(toX, Math.round(toY) + 0.5);
  context.stroke();
  context.restore();
}

function triangle(context, colour, { x, y, width, height }, isUp) {
  const [tip, base] = isUp ? [y, y + height] : [y + height, y];
  context.fillStyle = colour;
  context.beginPath();
  context.moveTo(x + width / 2, tip);
  context.lineTo(x + width, base);
  context.lineTo(x, base);
  context.closePath();
  context.fill();
}

function ring(context, colour, inside, { x, y, width, height }) {
  context.beginPath();
  context.arc(x + width / 2, y + height / 2, width / 2 - 1, 0, 2 * Math.PI);
  context.fillStyle = inside;
  context.strokeStyle = colour;
  context.lineWidth = 2;
  context.fill();
  context.stroke();
}
