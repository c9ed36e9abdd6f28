// One crosshair for all that stands on one axis of time: the vertical line and the figures of its bar are everywhere, the
// horizontal line is only where the pointer is.

export class SharedCrosshair {
  #owner;
  #time;
  #x;

  /** Each side has the library's `chart`, a `series` of it with values for its `bars()`, and `look(time)`, which tells the
   * figures of a time or, without one, those of now. */
  constructor(sides) {
    this.sides = sides;
    // After a drag that ends elsewhere the library would stay where the pointer left.
    addEventListener("mouseup", ({ target }) => sides.some(({ chart }) => chart.chartElement().contains(target)) || setTimeout(() => this.#leave()));
    for (const side of sides) {
      side.chart.subscribeCrosshairMove(({ time, point, sourceEvent }) => this.#move(side, time, point?.x, sourceEvent));
      side.chart.timeScale().subscribeVisibleLogicalRangeChange(() => this.#repeat());
    }
  }

  #move(side, time, x, isPointedAt) {
    if (isPointedAt && side !== this.#owner) this.#own(side);
    // The other side reports its crosshair too, whenever its bars move.
    if (side !== this.#owner) return;
    this.#x = x;
    if (time === this.#time) return;
    this.#time = time;
    for (const other of this.sides) if (other !== side) point(other, time);
  }

  /** The sides have moved: the library keeps a place on the screen, which is of another time now, and says so too late. */
  #repeat() {
    if (!this.#owner) return;
    const time = this.#x === undefined ? null : this.#owner.chart.timeScale().coordinateToTime(this.#x);
    this.#time = time ?? undefined;
    for (const side of this.sides) side === this.#owner ? side.look(this.#time) : point(side, this.#time);
  }

  #leave() {
    this.#time = this.#x = undefined;
    for (const side of this.sides) point(side);
  }

  #own(owner) {
    this.#owner = owner;
    for (const side of this.sides) {
      const isOwner = side === owner;
      side.chart.applyOptions({ crosshair: { horzLine: { visible: isOwner, labelVisible: isOwner } } });
    }
  }
}

function point({ chart, series, bars, look }, time) {
  // Where a series has no value in view the library fails.
  if (time !== undefined && bars().at(-1)?.time >= time) chart.setCrosshairPosition(0, time, series);
  else chart.clearCrosshairPosition();
  look(time);
}
