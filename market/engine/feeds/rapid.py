"""A simulated market at any rate, for load tests: the prices of the walk, with cheap noise between them."""

from bisect import bisect_left
from functools import lru_cache
from math import exp
from operator import attrgetter

from market.engine.feeds.noise import BELL, BELL_DEVIATION, Walk, derive_key, draw
from market.engine.feeds.profiles import Profile
from market.engine.feeds.quantiles import spread_points, trade_sizes
from market.engine.feeds.simulation import ORIGIN_MS
from market.engine.feeds.takers import TREND, is_trade
from market.prices.ticks import Tick

CELL_MS = 50
# The walk is asked four times a second; in between the price goes straight, but for the noise.
KNOT_MS = 250


class RapidMarket:
    def __init__(
        self, seed: int, symbol: str, digits: int, profile: Profile, volume_kind: str, rate: float
    ) -> None:
        """`rate` is in ticks a second."""
        self.symbol = symbol
        self._per_cell = rate * CELL_MS / 1000
        self._scale = 10**digits
        self._base_points: float = profile.base_price * self._scale
        self._walk = Walk(seed, symbol, profile.yearly_volatility, ORIGIN_MS)
        self._spreads = spread_points(profile.spread * self._scale)
        self._is_traded = volume_kind == "traded"
        _, self._sizes = trade_sizes(profile.volume_unit if self._is_traded else 0.0)
        # A third of the spread: a point on EUR/USD, as measured from tick to tick.
        self._noise = [(value - 127.5) / BELL_DEVIATION * self._spreads[128] / 3 for value in BELL]
        self._key = derive_key(seed, symbol, "rapid")
        self._cell = lru_cache(maxsize=2)(self._make_cell)
        self._knot = lru_cache(maxsize=4)(self._make_knot)

    def ticks_between(self, start_ms: int, end_ms: int) -> list[Tick]:
        """All ticks with start <= time < end, oldest first."""
        ticks: list[Tick] = []
        for cell in range(start_ms // CELL_MS, -(-end_ms // CELL_MS)):
            made = self._cell(cell)
            first, last = (bisect_left(made, ms, key=attrgetter("time_ms")) for ms in (start_ms, end_ms))
            ticks += made[first:last]
        return ticks

    def _make_cell(self, cell: int) -> list[Tick]:
        # Counted from the epoch, so that a rate below one a cell comes out right too.
        count = int((cell + 1) * self._per_cell) - int(cell * self._per_cell)
        chance = draw(self._key, cell, 4 * count)
        begin_ms = cell * CELL_MS
        level, slope = self._line(begin_ms)
        step = slope * CELL_MS / max(1, count)
        buyers = 128 + TREND * ((slope > 0) - (slope < 0))
        ticks, shown = [], 0
        bytes_of_each = zip(chance[::4], chance[1::4], chance[2::4], chance[3::4], strict=True)
        for i, (noise, spread, size, taker) in enumerate(bytes_of_each):
            bid = int(level + step * i + self._noise[noise])
            if bid == shown:
                bid += 1 if size % 2 else -1
            shown = bid
            time_ms = begin_ms + CELL_MS * i // count
            prices = bid / self._scale, (bid + self._spreads[spread]) / self._scale
            if not self._is_traded:
                ticks.append(Tick(self.symbol, prices[0], prices[1], time_ms, 1.0))
            elif is_trade(taker):
                side = 1 if taker < buyers else -1
                price = prices[side > 0]
                ticks.append(Tick(self.symbol, prices[0], prices[1], time_ms, self._sizes[size], side, price))
            else:
                ticks.append(Tick(self.symbol, prices[0], prices[1], time_ms))
        return ticks

    def _line(self, ms: int) -> tuple[float, float]:
        """The bid in points at a moment, and by how many it rises in a millisecond."""
        knot, within = divmod(ms, KNOT_MS)
        slope = (self._knot(knot + 1) - self._knot(knot)) / KNOT_MS
        return self._knot(knot) + slope * within, slope

    def _make_knot(self, knot: int) -> float:
        return self._base_points * exp(self._walk.at(knot * KNOT_MS)) - self._spreads[128] / 2
