// Folds live prices into the candle that forms, by the same rules as the service.
export const SECONDS = { "1m": 60, "5m": 300, "15m": 900, "1h": 3600, "4h": 14_400, "1d": 86_400 };

export class Forming {
  /** The last candle that is known, and the time of the last tick that is in it. */
  constructor(timeframe, candle, knownMs) {
    this.seconds = SECONDS[timeframe];
    this.candle = candle;
    this.knownMs = knownMs;
  }

  /** Returns whether the tick was new. */
  take(timeMs, price, volume) {
    if (timeMs <= this.knownMs) return false;
    const time = Math.floor(timeMs / 1000 / this.seconds) * this.seconds;
    const { candle } = this;
    if (candle && time < candle.time) return false;
    if (!candle || time > candle.time) {
      this.candle = { time, open: price, high: price, low: price, close: price, volume };
    } else {
      candle.high = Math.max(candle.high, price);
      candle.low = Math.min(candle.low, price);
      candle.close = price;
      candle.volume += volume;
    }
    return true;
  }

  /** Quiet minutes in between have flat candles, which only the service knows. */
  skips(timeMs) {
    return Boolean(this.candle) && timeMs / 1000 >= this.candle.time + 2 * this.seconds;
  }
}
