"""A market that is a pure function of seed, symbol and time: no state, no clock, the same everywhere."""

from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from math import exp, floor, log10, sqrt

from market.engine.feeds.activity import WINDOW_SECONDS, Activity
from market.engine.feeds.noise import YEAR_SECONDS, Walk, derive_key, stretch
from market.engine.feeds.profiles import PROFILES, Profile, profile_for
from market.prices.ticks import Tick

__all__ = ["PROFILES", "Bar", "Profile", "SimulatedMarket", "profile_for"]

# Open time, open, high, low, close, volume, ask high, ask low.
Bar = tuple[int, float, float, float, float, float, float, float]
# How far the bar goes above and below its samples, its spread in points and its number of ticks.
Detail = tuple[float, float, int, float]

# At this moment every instrument trades at its profile's price: 2026-11-15 00:00 UTC.
ORIGIN_MS = 1_794_700_800_000
SAMPLES = 4
# The quickest octave alone takes two bytes a second, so a chunk is a span of time, not a number of bars.
CHUNK_MS = 512 * 60_000
# Measured on an hour of EUR/USD: 5 % of the spreads are a third of the median, the widest three times it.
SPREAD_QUANTILES = ((0.0, 0.33), (0.05, 0.4), (0.5, 1.0), (0.95, 1.35), (0.99, 1.9), (1.0, 3.0))


class SimulatedMarket:
    def __init__(self, seed: int, symbol: str, digits: int, profile: Profile, volume_kind: str) -> None:
        self.symbol = symbol
        self._scale = 10**digits
        self._base_points = profile.base_price * self._scale
        self._deviation = profile.yearly_volatility / sqrt(YEAR_SECONDS)
        self._rate = profile.ticks_per_second
        self._walk = Walk(seed, symbol, profile.yearly_volatility, ORIGIN_MS)
        self._activity = Activity(seed, symbol, profile)
        self._spreads = _spread_points(profile.spread * self._scale)
        unit = 0.0 if volume_kind == "ticks" else profile.volume_unit
        self._decimals, self._sizes = _trade_sizes(unit)
        self._bar_key = derive_key(seed, symbol, "bars")
        # Live callers ask for parts of the same second many times over.
        self._second = lru_cache(maxsize=2 * WINDOW_SECONDS)(self._make_second)

    def ticks_between(self, start_ms: int, end_ms: int) -> list[Tick]:
        """All ticks with start <= time < end, oldest first."""
        ticks: list[Tick] = []
        for second in range(start_ms // 1000, -(-end_ms // 1000)):
            made = self._second(second)
            if second * 1000 < start_ms or second * 1000 + 1000 > end_ms:
                made = tuple(tick for tick in made if start_ms <= tick.time_ms < end_ms)
            ticks.extend(made)
        return ticks

    def quote_at(self, ms: int) -> Tick:
        """The last tick at or before a moment."""
        second = ms // 1000
        for earlier in range(second, second - 2 * WINDOW_SECONDS, -1):
            made = self._second(earlier)
            known = bisect_right(made, ms, key=lambda tick: tick.time_ms)
            if known:
                return made[known - 1]
        raise LookupError(f"{self.symbol} has no tick in two windows before {ms}")

    def bars_between(self, start_ms: int, end_ms: int, step_ms: int) -> Iterator[Bar]:
        """Bars on the bid that open at multiples of the step, start <= open < end, without making ticks."""
        if step_ms % SAMPLES:
            raise ValueError(f"step_ms must be a multiple of {SAMPLES}")
        counts = self._activity.counts(step_ms)
        beyond = self._unseen_range(step_ms)
        first, last = -(-start_ms // step_ms), -(-end_ms // step_ms)
        chunk = max(1, CHUNK_MS // step_ms)
        for begin in range(first, last, chunk):
            end = min(last, begin + chunk)
            path = self._walk.bars(begin, end, step_ms, SAMPLES)
            details = self._details(begin, end, step_ms, counts, beyond)
            yield from self._bars(range(begin * step_ms, end * step_ms, step_ms), path, details)

    def _make_second(self, second: int) -> tuple[Tick, ...]:
        ticks, shown = [], 0
        for ms, spread, size in self._activity.arrivals(second):
            points = self._spreads[spread]
            bid = int(self._base_points * exp(self._walk.at(ms)) - points / 2 + 0.5)
            # A venue sends a quote because it changed.
            if bid == shown:
                bid += 1 if size % 2 else -1
            shown = bid
            # A whole number of points over a power of ten is the nearest float to the rounded price.
            ask = (bid + points) / self._scale
            ticks.append(Tick(self.symbol, bid / self._scale, ask, ms, self._sizes[size]))
        return tuple(ticks)

    def _unseen_range(self, step_ms: int) -> list[float]:
        """256 log distances by which the ticks of a bar go beyond its few samples."""
        seconds = step_ms / SAMPLES / 1000
        # In theory 0.58 deviations of a gap; with 0.45 the average range is that of the ticks of a minute.
        missed = 0.45 * self._deviation * max(0.0, sqrt(seconds) - sqrt(1 / self._rate))
        return [missed * i / 127.5 for i in range(256)]

    def _details(
        self, first: int, last: int, step_ms: int, counts: tuple[float, list[float]], beyond: list[float]
    ) -> Iterator[Detail]:
        chance = stretch(self._bar_key + step_ms.to_bytes(8, "big"), first * 4, last * 4)
        levels = self._activity.levels(first * step_ms, step_ms, last - first)
        sure, more = counts
        return zip(
            [beyond[i] for i in chance[::4]],
            [beyond[i] for i in chance[1::4]],
            [self._spreads[i] for i in chance[2::4]],
            [sure + more[i] * level for i, level in zip(chance[3::4], levels, strict=True)],
            strict=True,
        )

    def _bars(self, opens: range, path: list[float], details: Iterator[Detail]) -> Iterator[Bar]:
        base, scale, least = self._base_points, self._scale, self._sizes[0]
        coarse, fine = 10 ** max(0, -self._decimals), 10 ** max(0, self._decimals)
        size = sum(self._sizes) / 256 * fine / coarse
        samples = [path[part:-1:SAMPLES] for part in range(SAMPLES)] + [path[SAMPLES::SAMPLES]]
        edges = map(max, *samples), map(min, *samples)
        opened = base * exp(path[0])
        rows = zip(opens, samples[-1], *edges, details, strict=True)
        for open_ms, end, top, bottom, (up, down, points, count) in rows:
            closed = base * exp(end)
            half = points / 2 - 0.5
            high, low = int(base * exp(top + up) - half), int(base * exp(bottom - down) - half)
            first, last = int(opened - half) / scale, int(closed - half) / scale
            volume = max(least, int(count * size + 0.5) * coarse / fine)
            ask_high, ask_low = (high + points) / scale, (low + points) / scale
            yield open_ms, first, high / scale, low / scale, last, volume, ask_high, ask_low
            opened = closed


def _spread_points(typical: float) -> list[int]:
    """256 equally likely spreads in points, ordered."""
    points = []
    for i in range(256):
        share = (i + 0.5) / 256
        above = next(n for n, (limit, _) in enumerate(SPREAD_QUANTILES) if limit >= share)
        (x0, y0), (x1, y1) = SPREAD_QUANTILES[above - 1 : above + 1]
        points.append(max(1, round(typical * (y0 + (y1 - y0) * (share - x0) / (x1 - x0)))))
    return points


def _trade_sizes(unit: float) -> tuple[int, list[float]]:
    """Decimals of a volume, and 256 equally likely sizes, ordered: many small trades, few large ones."""
    if not unit:
        return 0, [1.0] * 256
    decimals = 1 - floor(log10(unit))
    return decimals, [round(unit / 2 * ((i + 0.5) / 256) ** -0.7, decimals) for i in range(255, -1, -1)]
