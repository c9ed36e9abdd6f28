// The price of now: its tag on the axis, wherever the chart has been dragged to, and the way back to it.
import { isStill } from "../colours.js";

export class Live {
  constructor(chart, button) {
    Object.assign(this, { chart, button, line: null });
    this.scale = chart.chart.timeScale();
    this.scale.subscribeVisibleLogicalRangeChange(() => this.look());
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
  }

  show() {
    const { candles, bars, tint } = this.chart;
    const last = bars.at(-1);
    if (!last) {
      if (this.line) candles.removePriceLine(this.line);
      this.line = null;
      return;
    }
    const look = { price: last.close, color: last.close < last.open ? tint.down : tint.up, axisLabelTextColor: tint.surface };
    if (this.line) this.line.applyOptions(look);
    else this.line = candles.createPriceLine({ ...look, lineWidth: 1, lineStyle: 1, axisLabelVisible: true });
  }

  look() {
    this.button.hidden = !this.chart.bars.length || this.scale.scrollPosition() >= 0;
  }

  goBack() {
    this.scale.scrollToPosition(this.scale.options().rightOffset, !isStill.matches);
    this.chart.chart.priceScale("right").applyOptions({ autoScale: true });
  }
}
