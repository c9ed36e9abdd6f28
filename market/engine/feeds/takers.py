"""Who took: which quotes of a simulated market come with a trade, on which side and how large."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import sqrt

from market.engine.feeds.noise import BELL, YEAR_SECONDS, byte_at, derive_key
from market.engine.feeds.profiles import Profile

# A quote's time, its bid and its spread in points, and two bytes of chance: for a size and for its taker.
Quote = tuple[int, int, int, int, int]
# A side, 0 for a quote without a trade, and the place of the size among 256, from small to large.
Take = tuple[int, int]

TRADE_SHARE = 0.75
# Takers follow the price of the last seconds, and moods that last. So chosen that the side of a trade has a
# lag-1 autocorrelation of 0.3, and that the delta of a minute goes with its move at 0.5.
TREND_SECONDS, TREND = 8, 64
MOODS_SECONDS, MOOD = (4, 64), 0.6
WINDOW_SECONDS = 5
# One in so many of the windows in which the price rests has heavy trading that somebody absorbs.
ABSORBING = 36


class Takers:
    def __init__(
        self, seed: int, symbol: str, profile: Profile, quotes: Callable[[int], Sequence[Quote]]
    ) -> None:
        """`quotes` gives those of a second."""
        self._quotes = quotes
        self._moods = [(derive_key(seed, symbol, f"mood {length}"), length) for length in MOODS_SECONDS]
        self._plan = derive_key(seed, symbol, "absorption")
        move = profile.base_price * profile.yearly_volatility * sqrt(WINDOW_SECONDS / YEAR_SECONDS)
        # Where the price seldom rests, more of its rests are used: one a minute or two for most
        # instruments, one in a quarter of an hour for bitcoin.
        self._share = min(1.0, (1 + (0.6 * move / profile.spread) ** 4) / ABSORBING)
        self._pressed = lru_cache(maxsize=8)(self._find_pressed)

    def takes(self, second: int) -> list[Take]:
        """One for each quote of the second."""
        quotes = self._quotes(second)
        pressed = self._pressed(second // WINDOW_SECONDS)
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
        first = window * WINDOW_SECONDS
        seconds = range(first, first + WINDOW_SECONDS) if chance < 256 * self._share else range(0)
        quotes = [quote for second in seconds for quote in self._quotes(second)]
        if not quotes:
            return 0
        side = 1 if chance % 2 else -1
        prices = [bid + spread if side > 0 else bid for _, bid, spread, *_ in quotes]
        spreads = sorted(spread for _, _, spread, *_ in quotes)
        return side if max(prices) - min(prices) <= 2 * spreads[(len(spreads) - 1) // 2] else 0


def is_trade(taker: int) -> bool:
    return taker % 4 != 0
