// The levels of signals on the chart: entry, stop and target of the active ones, and where closed ones ended.
import { createSeriesMarkers } from "./charts.js";

const MOST_DRAWN = 3;

export class Levels {
  constructor(chart) {
    this.chart = chart;
    this.lines = [];
    this.signals = [];
    this.marks = createSeriesMarkers(chart.candles, []);
  }

  paint() {
    this.draw(this.signals);
  }

  replaced() {
    this.draw(this.signals);
  }

  draw(signals) {
    const { candles, tint } = this.chart;
    this.signals = signals;
    for (const line of this.lines.splice(0)) candles.removePriceLine(line);
    for (const signal of signals.filter(({ status }) => status === "active").slice(0, MOST_DRAWN)) {
      for (const [title, level, color] of [
        [`${signal.direction} ${signal.user}`, signal.entry, tint.accent],
        ["stop", signal.stop_loss, tint.down],
        ["target", signal.take_profit, tint.up],
      ]) {
        this.lines.push(candles.createPriceLine({ price: level, color, title, lineWidth: 1, lineStyle: 2, axisLabelVisible: true }));
      }
    }
    this.mark(signals.filter(({ status }) => status === "closed"));
  }

  mark(closed) {
    const { bars, tint } = this.chart;
    const first = bars[0]?.time ?? Infinity;
    const marks = closed
      .map((signal) => ({ at: Date.parse(signal.closed_at) / 1000, signal }))
      .filter(({ at }) => at >= first)
      .sort((one, other) => one.at - other.at)
      .map(({ at, signal: { pnl } }) => ({
        time: bars.findLast(({ time }) => time <= at).time,
        position: "aboveBar",
        shape: pnl < 0 ? "arrowDown" : "arrowUp",
        color: pnl < 0 ? tint.down : tint.up,
        text: `${pnl > 0 ? "+" : ""}${pnl}`,
      }));
    this.marks.setMarkers(marks);
  }
}
