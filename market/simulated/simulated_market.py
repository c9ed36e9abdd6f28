"""Markets as pure functions of seed, symbol and time: a lifelike one, and one of any rate for load tests.
Their random walk has no state, so that any moment can be computed alone."""

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from math import exp, log, sqrt
from operator import attrgetter
from statistics import NormalDist

from core.times import MINUTE_MS
from instruments.facts import InstrumentFacts
from instruments.hours import Span
from market.prices.candles import DAY_MS, PriceBar
from market.prices.order_flow import UNITS, MinuteFlow
from market.prices.records import Tick
from market.simulated.profiles import Profile, profile_for, spread_points, trade_sizes

# Periods are powers of two in milliseconds, from half a second to 2.2 years, so that a shift finds the cell.
SHORTEST, LONGEST = 9, 36
BLOCK = 1024

# Slow octaves are straight lines over this many bars, to within a point or two.
GROUP = 16
YEAR_SECONDS = 365.25 * 86_400


def _bell() -> bytes:
    """Maps even bytes to a symmetric normal distribution that fits into a byte."""
    upper = [round(127.5 + 44 * NormalDist().inv_cdf((i + 0.5) / 256)) for i in range(128, 256)]
    return bytes([255 - value for value in reversed(upper)] + upper)


BELL = _bell()
BELL_DEVIATION = sqrt(sum((value - 127.5) ** 2 for value in BELL) / 256)


def derive_key(seed: int, symbol: str, purpose: str) -> bytes:
    return hashlib.sha256(f"{seed}\0{symbol}\0{purpose}".encode()).digest()[:16]


def draw(key: bytes, index: int, size: int) -> bytes:
    return hashlib.shake_128(key + index.to_bytes(8, "big", signed=True)).digest(size)


def stretch(key: bytes, first: int, last: int) -> bytes:
    """Bytes first..last-1 of the endless sequence behind a key."""
    low, high = first // BLOCK, -(-last // BLOCK)
    joined = b"".join([draw(key, block, BLOCK) for block in range(low, high)])
    return joined[first - low * BLOCK : last - low * BLOCK]


def _block(key: bytes, block: int) -> bytes:
    """A block and the first byte of the next one, so that a line never has to look into two."""
    return draw(key, block, BLOCK) + draw(key, block + 1, 1)


_even_block = lru_cache(maxsize=1024)(_block)


# A block of each octave for more than 500 instruments: to compute them again takes ten times as long.
@lru_cache(maxsize=16_384)
def _bell_block(key: bytes, block: int) -> bytes:
    return _block(key, block).translate(BELL)


def byte_at(key: bytes, index: int) -> int:
    return _even_block(key, index // BLOCK)[index % BLOCK]


class Walk:
    """A random walk of log prices: a sum of octaves of value noise, each a straight line from knot to knot.

    With amplitudes that grow as the root of the period, the variance over a time is proportional to it, as
    a random walk's is, yet the sum of all octaves stays bounded: the price never drifts away.
    """

    def __init__(self, seed: int, symbol: str, yearly_volatility: float, origin_ms: int) -> None:
        # The structure function of this sum at a lag of one period comes to 4 deviations squared.
        unit = yearly_volatility / sqrt(YEAR_SECONDS * 1000) / (2 * BELL_DEVIATION)
        self._octaves: list[tuple[int, int, float, bytes]] = []
        for bits in range(SHORTEST, LONGEST + 1):
            key = derive_key(seed, symbol, f"octave {bits}")
            # Each octave starts elsewhere: knots of all octaves at the same moment would show as seams.
            phase = int.from_bytes(draw(key, -1, 8), "big") % (1 << bits)
            self._octaves.append((bits, phase, unit * sqrt(1 << bits), key))
        self._origin = 0.0
        self._origin = self.at(origin_ms)

    def at(self, ms: int) -> float:
        total = -self._origin
        for bits, phase, amplitude, key in self._octaves:
            moment = ms + phase
            block, knot = divmod(moment >> bits, BLOCK)
            knots = _bell_block(key, block)
            left = knots[knot]
            share = (moment & ((1 << bits) - 1)) / (1 << bits)
            total += amplitude * (left + (knots[knot + 1] - left) * share)
        return total

    def bars(self, first: int, last: int, step_ms: int, samples: int) -> list[float]:
        """Values from one bar's open to another's, `samples` a bar, whatever range they are asked in."""
        slow_from = max(SHORTEST, (step_ms * GROUP * 32).bit_length())
        quick_to = max(SHORTEST, step_ms.bit_length())
        low, high = first // GROUP, -(-last // GROUP)
        slow = [-self._origin] * (high - low + 1)
        slow = self._add(slow, low * GROUP * step_ms, step_ms * GROUP, slow_from, LONGEST + 1)
        values = _between(slow, GROUP)[first - low * GROUP : last - low * GROUP + 1]
        values = _between(self._add(values, first * step_ms, step_ms, quick_to, slow_from), samples)
        gap_ms = step_ms // samples
        # What turns 32 times between two samples moves them by a fifth of what is seen at most: left out.
        quick_from = max(SHORTEST, gap_ms.bit_length() - 5)
        return self._add(values, first * step_ms, gap_ms, quick_from, quick_to)

    def at_each(self, moments: list[int], quick_from: int) -> list[float]:
        """Values at moments in their order, without the octaves that are quicker than this one."""
        values = [-self._origin] * len(moments)
        if not moments:
            return values
        for bits, phase, amplitude, key in self._octaves[max(0, quick_from - SHORTEST) :]:
            cell, last = (moments[0] + phase) >> bits, (moments[-1] + phase) >> bits
            knots = stretch(key, cell, last + 2).translate(BELL)
            begin, mask, scale = phase - (cell << bits), (1 << bits) - 1, 1 / (1 << bits)
            values = [
                value
                + amplitude
                * (
                    (left := knots[i := (t := moment + begin) >> bits])
                    + (knots[i + 1] - left) * ((t & mask) * scale)
                )
                for value, moment in zip(values, moments, strict=True)
            ]
        return values

    def _add(self, values: list[float], start: int, step: int, from_bits: int, to_bits: int) -> list[float]:
        for bits, phase, amplitude, key in self._octaves[from_bits - SHORTEST : max(0, to_bits - SHORTEST)]:
            begin = start + phase
            cell = begin >> bits
            end = begin + step * len(values)
            knots = stretch(key, cell, (end >> bits) + 2).translate(BELL)
            begin -= cell << bits
            mask, scale = (1 << bits) - 1, 1 / (1 << bits)
            moments = range(begin, begin + step * len(values), step)
            values = [
                value
                + amplitude * ((left := knots[i := t >> bits]) + (knots[i + 1] - left) * ((t & mask) * scale))
                for value, t in zip(values, moments, strict=True)
            ]
        return values


def _between(knots: list[float], parts: int) -> list[float]:
    """Straight lines from knot to knot, each in `parts` parts."""
    shares = [part / parts for part in range(parts)]
    line = [left + (right - left) * share for left, right in pairwise(knots) for share in shares]
    return [*line, knots[-1]]


# When simulated ticks come, in bursts and pauses, and which are trades, on which side and how large.
MOST_PER_SECOND = 10
BURST_SECONDS = 2

# Every window of this many seconds has a tick, so that a last quote is always near.
WINDOW_SECONDS = 16

# How busy the market is in general changes over 17 minutes or so.
LEVEL_BITS = 20

# A tick's time, and three bytes of chance: for its spread, its size and its taker.
Arrival = tuple[int, int, int, int]


class Activity:
    def __init__(self, seed: int, symbol: str, profile: Profile) -> None:
        purposes = ("arrivals", "bursts", "windows", "levels")
        keys = [derive_key(seed, symbol, purpose) for purpose in purposes]
        self._arrivals, self._bursts, self._windows, self._levels = keys
        self._least = profile.least_per_second
        extra = max(0.1, profile.ticks_per_second - self._least)
        # Measured on an hour of EUR/USD, 1 tick a second: half the gaps are below 0.4 s, a tenth above 2.8 s,
        # a hundredth above 7 s.
        self._burst_rate = extra + 1.0
        self._burst_share = extra / self._burst_rate

    def arrivals(self, second: int) -> list[Arrival]:
        """The ticks of one second, their times strictly increasing."""
        chance = draw(self._arrivals, second, 4 + 4 * MOST_PER_SECOND)
        takers = chance[4 + 3 * MOST_PER_SECOND :]
        count = self._count(second, (chance[0] * 256 + chance[1] + 0.5) / 65_536)
        length = 500 + 490 * chance[2] // 256
        begin = second * 1000 + (990 - length) * chance[3] // 256
        made = []
        for i in range(count):
            offset, spread, size = chance[4 + 3 * i : 7 + 3 * i]
            # At most nine tenths into a slot of at least 50 ms, so two ticks never share a millisecond.
            made.append((begin + int(length * (i + offset / 285) / count), spread, size, takers[i]))
        return made

    def _count(self, second: int, chance: float) -> int:
        count = self._least
        if byte_at(self._bursts, second // BURST_SECONDS) < 256 * self._burst_share:
            count += int(0.5 - log(chance) * self._burst_rate * self.level(second * 1000))
        chosen = byte_at(self._windows, second // WINDOW_SECONDS) % WINDOW_SECONDS
        if second % WINDOW_SECONDS == chosen:
            count = max(1, count)
        return min(count, MOST_PER_SECOND)

    def level(self, ms: int) -> float:
        """How busy the market is at a moment; 1 is normal."""
        cell, within = divmod(ms, 1 << LEVEL_BITS)
        left, right = BELL[byte_at(self._levels, cell)], BELL[byte_at(self._levels, cell + 1)]
        return 0.5 + (left + (right - left) * within / (1 << LEVEL_BITS)) / 255

    def levels(self, start_ms: int, step_ms: int, count: int) -> list[float]:
        """How busy each step of a row is at its middle; 1 is normal."""
        begin = start_ms + step_ms // 2
        first = begin >> LEVEL_BITS
        end = begin + step_ms * count
        knots = stretch(self._levels, first, (end >> LEVEL_BITS) + 2).translate(BELL)
        begin -= first << LEVEL_BITS
        mask, scale = (1 << LEVEL_BITS) - 1, 1 / (1 << LEVEL_BITS)
        return [
            0.5 + ((left := knots[i := t >> LEVEL_BITS]) + (knots[i + 1] - left) * ((t & mask) * scale)) / 255
            for t in range(begin, begin + step_ms * count, step_ms)
        ]

    def counts(self, step_ms: int) -> tuple[float, list[float]]:
        """The ticks that always come in a step, and 256 equally likely numbers of more at level 1."""
        seconds = step_ms / 1000
        most = MOST_PER_SECOND - self._least
        mean = self._burst_share * sum(exp(-(n - 0.5) / self._burst_rate) for n in range(1, most + 1))
        if not self._least:
            mean += exp(-mean) / WINDOW_SECONDS
        # Variance over mean squared of one burst: 1.5 in theory, 1.2 measured with the limit on a second.
        variance = (1.2 / self._burst_share - 1) / max(1.0, seconds / BURST_SECONDS)
        normal = NormalDist(0.0, min(1.0, sqrt(max(0.0, variance))))
        shares = [exp(normal.inv_cdf((i + 0.5) / 256) - normal.variance / 2) for i in range(256)]
        return self._least * seconds, [mean * seconds * share for share in shares]


# A quote's time, its bid and its spread in points, and two bytes of chance: for a size and for its taker.
SimulatedQuote = tuple[int, int, int, int, int]

# A side, 0 for a quote without a trade, and the rank of the size among 256, from small to large.
Take = tuple[int, int]
TRADE_SHARE = 0.75

# Takers follow the price of the last seconds, and moods that last. With these values the side of a trade has
# a lag-1 autocorrelation of 0.3, and the delta of a minute correlates with its move at 0.5.
TREND_SECONDS, TREND = 8, 64
MOODS_SECONDS, MOOD = (4, 64), 0.6
PRESSED_SECONDS = 5

# One in this many windows in which the price rests has heavy trading that is absorbed.
ABSORBING = 36


class Takers:
    def __init__(
        self, seed: int, symbol: str, profile: Profile, quotes: Callable[[int], Sequence[SimulatedQuote]]
    ) -> None:
        """`quotes` gives those of a second."""
        self._quotes = quotes
        self._moods = [(derive_key(seed, symbol, f"mood {length}"), length) for length in MOODS_SECONDS]
        self._plan = derive_key(seed, symbol, "absorption")
        move = profile.base_price * profile.yearly_volatility * sqrt(PRESSED_SECONDS / YEAR_SECONDS)
        # The less often the price rests, the more of its rests are used: one in a minute or two for most
        # instruments, one in a quarter of an hour for bitcoin.
        self._share = min(1.0, (1 + (0.6 * move / profile.spread) ** 4) / ABSORBING)
        self._pressed = lru_cache(maxsize=8)(self._find_pressed)

    def takes(self, second: int) -> list[Take]:
        """One for each quote of the second."""
        quotes = self._quotes(second)
        pressed = self._pressed(second // PRESSED_SECONDS)
        if pressed:
            # One side only, and of the sizes the larger half.
            return [(is_trade(taker) * pressed, 128 + size // 2) for *_, size, taker in quotes]
        mood, before = 128 + self._mood(second), self._mid_of(second - TREND_SECONDS)
        takes = []
        for _, bid, spread, size, taker in quotes:
            mid = 2 * bid + spread
            trend = (mid > before) - (mid < before) if before else 0
            side = 1 if taker < mood + TREND * trend else -1
            takes.append((is_trade(taker) * side, size))
        return takes

    def _mid_of(self, second: int) -> int:
        """Twice the last mid of a second, in points; 0 if it has none."""
        quotes = self._quotes(second)
        return 2 * quotes[-1][1] + quotes[-1][2] if quotes else 0

    def _mood(self, second: int) -> float:
        return MOOD * sum(BELL[byte_at(key, second // length)] - 127.5 for key, length in self._moods)

    def _find_pressed(self, window: int) -> int:
        """The side that takes in vain all through a window; 0 for none."""
        chance = byte_at(self._plan, window)
        first = window * PRESSED_SECONDS
        seconds = range(first, first + PRESSED_SECONDS) if chance < 256 * self._share else range(0)
        quotes = [quote for second in seconds for quote in self._quotes(second)]
        if not quotes:
            return 0
        side = 1 if chance % 2 else -1
        prices = [bid + spread if side > 0 else bid for _, bid, spread, *_ in quotes]
        spreads = sorted(spread for _, _, spread, *_ in quotes)
        return side if max(prices) - min(prices) <= 2 * spreads[(len(spreads) - 1) // 2] else 0


def is_trade(taker: int) -> bool:
    return taker % 4 != 0


# The order flow of simulated minutes, made of their bars: what their ticks might have come to.
# As in the ticks of the simulated market, delta correlates with the move of its minute at about 0.5.
MOVE, NOISE, MOST = 0.25, 0.22, 0.9
# One minute in about six has an absorption.
ABSORBING_MINUTES = 42


def minute_flows(bars: Iterable[PriceBar], seed: int, symbol: str) -> Iterator[MinuteFlow]:
    """Of minutes in order that begin with a day: the running sum begins there, too."""
    leans, absorptions = (derive_key(seed, symbol, f"minute {what}") for what in ("delta", "absorption"))
    day = running = 0
    for bar in bars:
        minute = bar.opened_ms // MINUTE_MS
        if bar.opened_ms // DAY_MS != day:
            day, running = bar.opened_ms // DAY_MS, 0
        bought, sold = _sides(bar, (BELL[byte_at(leans, minute)] - 127.5) / BELL_DEVIATION)
        running += bought - sold
        found = int(byte_at(absorptions, minute) < ABSORBING_MINUTES)
        yield MinuteFlow(bar.opened_ms, sold / UNITS, bought / UNITS, running / UNITS, found)


def _sides(bar: PriceBar, noise: float) -> tuple[int, int]:
    """In whole hundred-millionths, which together are the volume of the bar."""
    span = bar.high - bar.low
    lean = MOVE * (bar.close - bar.open) / span if span else 0.0
    share = (1 + max(-MOST, min(MOST, lean + NOISE * noise))) / 2
    volume = round(bar.volume * UNITS)
    # Ticks are whole, and trades have no more than three decimals.
    step = UNITS if not volume % UNITS else UNITS // 1_000
    bought = min(volume, round(volume * share / step) * step)
    return bought, volume - bought


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
