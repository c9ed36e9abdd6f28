"""When simulated ticks come, in bursts and pauses, and which are trades, on which side and how large."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import exp, log, sqrt
from statistics import NormalDist

from .noise import BELL, YEAR_SECONDS, byte_at, derive_key, draw, stretch
from .profiles import Profile

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

# One in so many of the windows in which the price rests has heavy trading that somebody absorbs.
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
