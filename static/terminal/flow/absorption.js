// Which bars had unusually much absorption. Long bars have some nearly always: a mark on each of them would say nothing.
const DEVIATIONS = 2;
const APART_PX = 200;
// Marks of two stretches may be neighbours: closer than this part of a stretch they are one.
const NEAR = 1 / 4;

/** How many bars share a mark, so that there are a few in sight. In powers of two: zooming a little moves none of them. */
export const stretchOf = (barPx) => 2 ** Math.ceil(Math.log2(Math.max(1, APART_PX / barPx)));

/** In each stretch of the chart the bar with the most absorptions, if it has more than is usual. */
export function unusual(bars, seconds, stretch) {
  const least = leastOf(bars);
  const found = [];
  for (const bar of bars) {
    if (!bar.absorptions || bar.absorptions < least) continue;
    const last = found.at(-1);
    const isNear = last && (stretchAt(last, seconds, stretch) === stretchAt(bar, seconds, stretch) || bar.time - last.time < NEAR * stretch * seconds);
    if (!isNear) found.push(bar);
    else if (isMore(bar, last)) found[found.length - 1] = bar;
  }
  return found;
}

const stretchAt = ({ time }, seconds, stretch) => Math.floor(time / seconds / stretch);
const volumeOf = ({ bought, sold }) => bought + sold;

function isMore(one, other) {
  return one.absorptions - other.absorptions > 0 || (one.absorptions === other.absorptions && volumeOf(one) > volumeOf(other));
}

function leastOf(bars) {
  const mean = bars.reduce((sum, { absorptions }) => sum + absorptions, 0) / bars.length;
  const variance = bars.reduce((sum, { absorptions }) => sum + (absorptions - mean) ** 2, 0) / bars.length;
  return mean + DEVIATIONS * Math.sqrt(variance);
}
