// The price of now: its tag on the axis, wherever the chart has been dragged to, and the way back to it.
export class Live {
  constructor(chart, button) {
    Object.assign(this, { chart, button, line: null });
    this.scale = chart.chart.timeScale();
    this.scale.subscribeVisibleLogicalRangeChange(() => this.look());
    // Of the price scale, and of who drags it, the library tells nothing. A drag may end anywhere.
    const soon = () => (this.frame ??= requestAnimationFrame(() => this.look()));
    for (const moved of ["pointermove", "wheel", "dblclick"]) chart.element.addEventListener(moved, soon, { passive: true });
    addEventListener("pointerup", soon);
    button.addEventListener("click", () => this.goBack());
  }

  paint() {
    this.show();
  }

  replaced() {
    this.show();
    this.look();
  }

  advanced() {
    this.show();
    this.look();
  }

  aged() {
    this.show();
  }

  show() {
    const { candles, bars, tint, isStale } = this.chart;
    const last = bars.at(-1);
    if (!last) {
      if (this.line) candles.removePriceLine(this.line);
      this.line = null;
      return;
    }
    const direction = last.close < last.open ? tint.down : tint.up;
    const look = { price: last.close, color: isStale ? tint.soft : direction, axisLabelTextColor: tint.surface };
    if (this.line) this.line.applyOptions(look);
    else this.line = candles.createPriceLine({ ...look, lineWidth: 1, lineStyle: 1, axisLabelVisible: true });
  }

  look() {
    this.frame = undefined;
    this.button.hidden = !this.chart.bars.length || (this.scale.scrollPosition() >= 0 && this.isInSight);
  }

  /** Whether the live price is between the ends of the price scale, which the user may have moved. */
  get isInSight() {
    const { bars, candles, chart } = this.chart;
    if (chart.priceScale("right").options().autoScale) return true;
    const y = candles.priceToCoordinate(bars.at(-1).close);
    return y === null || (y >= 0 && y <= chart.panes()[0].getHeight());
  }

  goBack() {
    // Without the library's animation, whose last step is left out on a busy machine.
    this.scale.scrollToPosition(this.scale.options().rightOffset, false);
    this.chart.chart.priceScale("right").applyOptions({ autoScale: true });
  }
}
