"""Two moving averages that cross, tried on the service's own history with backtesting.py:

pip install './clients/python[pandas]' backtesting
python clients/python/examples/backtest.py EURUSD 1h --start 2026-01-01T00:00Z
"""

from __future__ import annotations

import argparse

import pandas
from backtesting import Backtest, Strategy
from backtesting.lib import crossover
from tickwire import Client


def average(closes: pandas.Series[float], bars: int) -> pandas.Series[float]:
    return pandas.Series(closes).rolling(bars).mean()


class Crossing(Strategy):  # type: ignore[misc]
    fast, slow = 10, 30

    def init(self) -> None:
        self.quick = self.I(average, self.data.Close, self.fast)
        self.steady = self.I(average, self.data.Close, self.slow)

    def next(self) -> None:
        if crossover(self.quick, self.steady):
            self.position.close()
            self.buy(size=0.95)
        elif crossover(self.steady, self.quick):
            self.position.close()
            self.sell(size=0.95)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("symbol")
    parser.add_argument("timeframe", nargs="?", default="1h")
    parser.add_argument("--start")
    parser.add_argument("--end")
    wanted = parser.parse_args()

    with Client() as tickwire:
        history = tickwire.history(wanted.symbol, wanted.timeframe, start=wanted.start, end=wanted.end)
        frame = history.to_pandas().rename(columns=str.capitalize)
        quote = tickwire.quote(wanted.symbol)
    # Candles are of the bid: what a purchase costs more is the spread, relative to the price.
    spread = quote["spread"] / quote["bid"]
    result = Backtest(frame, Crossing, cash=100_000, spread=spread, finalize_trades=True).run()
    print(f"{wanted.symbol} {wanted.timeframe}: {len(frame):,} bars, {frame.index[0]} to {frame.index[-1]}")
    print(
        f"{result['# Trades']} trades, return {result['Return [%]']:+.2f} %, "
        f"drawdown {result['Max. Drawdown [%]']:.2f} %"
    )


if __name__ == "__main__":
    main()
