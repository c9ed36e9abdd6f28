"""The model that is always there: linear, in pure Python, from one file beside this one."""

from __future__ import annotations

from functools import cache, lru_cache, partial
from math import exp, sqrt
from pathlib import Path
from typing import NamedTuple

from news.labels import BEARISH_FROM, BULLISH_FROM

from .features import features, pieces
from .weights import Weights, place, read_weights

FILE = Path(__file__).with_name("tickwire-linear-1.model")
NEAREST_NEUTRAL = 0.149
# A weight is a signed byte, lifted above 0; a title has a few thousand features at most.
FIELD, LIFT = 20, 128
FULL = (1 << FIELD) - 1
# Of each kind; a few megabytes in all.
REMEMBERED = 16_384


class Odds(NamedTuple):
    bearish: float
    neutral: float
    bullish: float


class LinearModel:
    def __init__(self, weights: Weights) -> None:
        self.facts = weights.facts
        self.version = weights.checksum
        self._tables = weights.tables
        # Words and signs come again and again: what they weigh is looked up once.
        self._of_term = lru_cache(REMEMBERED)(partial(self._look_up, "terms"))
        self._of_sign = lru_cache(REMEMBERED)(partial(self._look_up, "signs"))
        self._of_pieces = lru_cache(REMEMBERED)(self._sum_of_pieces)

    @property
    def identifier(self) -> str:
        return self.facts.identifier

    def score(self, title: str, category: str = "") -> float:
        return score_of(self.odds(title, category))

    def odds(self, title: str, category: str = "") -> Odds:
        seen = features(title, category)
        bullish, bearish = self.facts.bias
        for name, total in (
            ("terms", sum(map(self._of_term, seen.terms))),
            ("pieces", sum(map(self._of_pieces, seen.words))),
            ("signs", sum(map(self._of_sign, seen.signs))),
        ):
            squares, up, down = unpacked(total)
            if squares:
                group = self.facts.groups[name]
                factor = group.scale * group.shares[bool(seen.category)] / sqrt(squares)
                bullish += up * factor
                bearish += down * factor
        return odds_of(bullish, bearish)

    def _sum_of_pieces(self, word: str) -> int:
        return sum(self._look_up("pieces", piece) for piece in pieces(word))

    def _look_up(self, group: str, feature: str) -> int:
        table = self._tables[group]
        at = place(feature, len(table.rarity))
        return packed(table.rarity[at] ** 2, table.bullish[at], table.bearish[at])


def packed(squares: int, bullish: int, bearish: int) -> int:
    """Side by side in one number, with a 1 that counts: so adding up hundreds of them is one `sum`."""
    return ((squares << FIELD | 1) << FIELD | bullish + LIFT) << FIELD | bearish + LIFT


def unpacked(total: int) -> tuple[int, int, int]:
    bearish, bullish = total & FULL, total >> FIELD & FULL
    count = total >> 2 * FIELD & FULL
    return total >> 3 * FIELD, bullish - count * LIFT, bearish - count * LIFT


def odds_of(bullish: float, bearish: float) -> Odds:
    """Softmax, with neutral at 0."""
    top = max(bullish, bearish, 0.0)
    up, down, flat = exp(bullish - top), exp(bearish - top), exp(-top)
    total = up + down + flat
    return Odds(down / total, flat / total, up / total)


def score_of(odds: Odds) -> float:
    """-1 to 1, so that the label by the fixed thresholds is the likeliest class."""
    bearish, neutral, bullish = odds
    if bullish > max(neutral, bearish):
        return round(BULLISH_FROM + (1 - BULLISH_FROM) * (bullish - max(neutral, bearish)), 3)
    if bearish > max(neutral, bullish):
        return round(BEARISH_FROM - (1 + BEARISH_FROM) * (bearish - max(neutral, bullish)), 3)
    spread = neutral - min(bullish, bearish)
    inside = BULLISH_FROM * (bullish - bearish) / spread if spread else 0.0
    return round(max(-NEAREST_NEUTRAL, min(NEAREST_NEUTRAL, inside)), 3)


@cache
def linear_model() -> LinearModel:
    return LinearModel(read_weights(FILE))
