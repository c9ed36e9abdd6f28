"""Markets as pure functions of seed, symbol and time: a lifelike one, and one of any rate for load tests."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from math import exp, sqrt
from operator import attrgetter

from instruments.facts import InstrumentFacts
from instruments.hours import Span
from market.prices.records import Tick

from .activity import TRADE_SHARE, TREND, WINDOW_SECONDS, Activity, SimulatedQuote, Takers, is_trade
from .noise import BELL, BELL_DEVIATION, YEAR_SECONDS, Walk, derive_key, draw, stretch
from .profiles import Profile, profile_for, spread_points, trade_sizes

# Open time, open, high, low, close, volume, ask high, ask low.
SimulatedBar = tuple[int, float, float, float, float, float, float, float]

# How far the bar goes above and below its samples, its spread in points and its number of ticks.
Detail = tuple[float, float, int, float]

# At this moment every instrument trades at its profile's price: 2026-11-15 00:00 UTC.
ORIGIN_MS = 1_794_700_800_000
SAMPLES = 4

# Bars of long spans leave out what turns within a minute.
COARSE_FROM = 16

# The quickest octave alone takes two bytes a second, so a chunk is a span of time, not a number of bars.
CHUNK_MS = 512 * 60_000


class SimulatedMarket:
    def __init__(self, seed: int, symbol: str, digits: int, profile: Profile, volume_kind: str) -> None:
        self.symbol = symbol
        self._scale = 10**digits
        self._base_points = profile.base_price * self._scale
        self._deviation = profile.yearly_volatility / sqrt(YEAR_SECONDS)
        self._rate = profile.ticks_per_second
        self._walk = Walk(seed, symbol, profile.yearly_volatility, ORIGIN_MS)
        self._activity = Activity(seed, symbol, profile)
        self._spreads = spread_points(profile.spread * self._scale)
        self._is_traded = volume_kind == "traded"
        self._decimals, self._sizes = trade_sizes(profile.volume_unit if self._is_traded else 0.0)
        self._bar_key = derive_key(seed, symbol, "bars")
        # Live callers ask for parts of the same second many times over.
        self._second = lru_cache(maxsize=2 * WINDOW_SECONDS)(self._make_second)
        self._quotes = lru_cache(maxsize=2 * WINDOW_SECONDS)(self._make_quotes)
        # Sessions have a few lengths only.
        self._typical = lru_cache(maxsize=64)(self._make_typical)
        self._takers = Takers(seed, symbol, profile, self._quotes)

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

    def bars_between(self, start_ms: int, end_ms: int, step_ms: int) -> Iterator[SimulatedBar]:
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
            samples = [path[part:-1:SAMPLES] for part in range(SAMPLES)] + [path[SAMPLES::SAMPLES]]
            details = self._details(begin, end, step_ms, counts, beyond)
            yield from self._bars(range(begin * step_ms, end * step_ms, step_ms), samples, details)

    def bars_of(self, spans: Sequence[Span]) -> Iterator[SimulatedBar]:
        """One bar on the bid for each span of time, however long; they are in order and do not overlap."""
        parts = [
            opens_ms + (closes_ms - opens_ms) * part // SAMPLES
            for opens_ms, closes_ms in spans
            for part in range(SAMPLES + 1)
        ]
        path = self._walk.at_each(parts, COARSE_FROM)
        samples = [path[part :: SAMPLES + 1] for part in range(SAMPLES + 1)]
        opens = [opens_ms for opens_ms, _ in spans]
        return self._bars(opens, samples, map(self._detail, spans))

    def _make_second(self, second: int) -> tuple[Tick, ...]:
        quotes, scale = self._quotes(second), self._scale
        if not self._is_traded:
            return tuple(
                Tick(self.symbol, bid / scale, (bid + points) / scale, ms, 1.0)
                for ms, bid, points, _, _ in quotes
            )
        ticks = []
        for (ms, bid, points, _, _), (side, size) in zip(quotes, self._takers.takes(second), strict=True):
            # A whole number of points over a power of ten is the nearest float to the rounded price.
            prices = bid / scale, (bid + points) / scale
            if side:
                ticks.append(Tick(self.symbol, *prices, ms, self._sizes[size], side, prices[side > 0]))
            else:
                ticks.append(Tick(self.symbol, *prices, ms))
        return tuple(ticks)

    def _make_quotes(self, second: int) -> tuple[SimulatedQuote, ...]:
        quotes, shown = [], 0
        for ms, spread, size, taker in self._activity.arrivals(second):
            points = self._spreads[spread]
            bid = int(self._base_points * exp(self._walk.at(ms)) - points / 2 + 0.5)
            # A venue sends a quote because it changed.
            if bid == shown:
                bid += 1 if size % 2 else -1
            shown = bid
            quotes.append((ms, bid, points, size, taker))
        return tuple(quotes)

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

    def _detail(self, span: Span) -> Detail:
        opens_ms, closes_ms = span
        length_ms = closes_ms - opens_ms
        (sure, more), beyond = self._typical(length_ms)
        up, down, spread, count = draw(self._bar_key + length_ms.to_bytes(8, "big"), opens_ms, 4)
        level = self._activity.level((opens_ms + closes_ms) // 2)
        return beyond[up], beyond[down], self._spreads[spread], sure + more[count] * level

    def _make_typical(self, length_ms: int) -> tuple[tuple[float, list[float]], list[float]]:
        return self._activity.counts(length_ms), self._unseen_range(length_ms)

    def _bars(
        self, opens: Sequence[int], samples: list[list[float]], details: Iterable[Detail]
    ) -> Iterator[SimulatedBar]:
        base, scale, least = self._base_points, self._scale, self._sizes[0]
        coarse, fine = 10 ** max(0, -self._decimals), 10 ** max(0, self._decimals)
        size = sum(self._sizes) / 256 * fine / coarse * (TRADE_SHARE if self._is_traded else 1)
        edges = map(max, *samples), map(min, *samples)
        rows = zip(opens, samples[0], samples[-1], *edges, details, strict=True)
        for open_ms, start, end, top, bottom, (up, down, points, count) in rows:
            half = points / 2 - 0.5
            high, low = int(base * exp(top + up) - half), int(base * exp(bottom - down) - half)
            first, last = int(base * exp(start) - half) / scale, int(base * exp(end) - half) / scale
            volume = max(least, int(count * size + 0.5) * coarse / fine)
            ask_high, ask_low = (high + points) / scale, (low + points) / scale
            yield open_ms, first, high / scale, low / scale, last, volume, ask_high, ask_low


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


def simulated(facts: InstrumentFacts, seed: int) -> SimulatedMarket:
    profile = profile_for(facts.symbol, facts.digits, facts.pip_size, facts.type)
    return SimulatedMarket(seed, facts.symbol, facts.digits, profile, facts.volume_kind)
