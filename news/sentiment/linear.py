"""The built-in model, always available: linear, in pure Python, read from the trained file beside it.

The file is a line of JSON that describes it, then three packed tables for each group of features. A
feature's place in the tables of its group is a checksum of its text. There stand its rarity (in sixteenths)
and, multiplied by it, its weights for bullish and for bearish, both against neutral, as signed bytes."""

from __future__ import annotations

import hashlib
import zlib
from array import array
from functools import cache, lru_cache, partial
from math import exp, sqrt
from pathlib import Path
from typing import NamedTuple

import msgspec

from news.labels import BEARISH_FROM, BULLISH_FROM

from .features import features

FILE = Path(__file__).with_name("tickwire-linear-1.model")
NEAREST_NEUTRAL = 0.149
# A weight is a signed byte, shifted above 0; a title has a few thousand features at most.
FIELD, LIFT = 20, 128
FULL = (1 << FIELD) - 1
# Entries of each kind, a few megabytes in all.
REMEMBERED = 16_384
PIECES = (3, 4, 5)
GROUPS = ("terms", "pieces", "signs")
RARITY_STEPS = 16


class Odds(NamedTuple):
    bearish: float
    neutral: float
    bullish: float


class LinearModel:
    def __init__(self, weights: Weights) -> None:
        self.facts = weights.facts
        self.identifier = f"{self.facts.name}-{self.facts.version}"
        self.version = weights.checksum
        self._tables = weights.tables
        # Words and signs recur, so their weights are cached.
        self._of_term = lru_cache(REMEMBERED)(partial(self._look_up, "terms"))
        self._of_sign = lru_cache(REMEMBERED)(partial(self._look_up, "signs"))
        self._of_pieces = lru_cache(REMEMBERED)(self._sum_of_pieces)

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


@cache
def linear_model() -> LinearModel:
    return LinearModel(read_weights(FILE))


def pieces(word: str) -> list[str]:
    """The character n-grams of a word, including its edges; they carry over to unknown words."""
    edged = f" {word} "
    return [edged[at : at + size] for size in PIECES for at in range(len(edged) - size + 1)]


def packed(squares: int, bullish: int, bearish: int) -> int:
    """Packs the values and a count of 1 into one number, so that hundreds are added by a single `sum`."""
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
    """From -1 to 1, such that the fixed thresholds give the likeliest class as the label."""
    bearish, neutral, bullish = odds
    if bullish > max(neutral, bearish):
        return round(BULLISH_FROM + (1 - BULLISH_FROM) * (bullish - max(neutral, bearish)), 3)
    if bearish > max(neutral, bullish):
        return round(BEARISH_FROM - (1 + BEARISH_FROM) * (bearish - max(neutral, bullish)), 3)
    spread = neutral - min(bullish, bearish)
    inside = BULLISH_FROM * (bullish - bearish) / spread if spread else 0.0
    return round(max(-NEAREST_NEUTRAL, min(NEAREST_NEUTRAL, inside)), 3)


class BadModel(Exception):
    """The file is not a model; the message says why."""


class GroupFacts(msgspec.Struct, frozen=True):
    size: int
    """Entries of each of its tables; a power of two."""
    scale: float
    """The value of one step of a weight."""
    shares: tuple[float, float]
    """The group's share in titles about companies, and in those of the other categories."""


class ModelFacts(msgspec.Struct, frozen=True):
    name: str
    version: int
    bias: tuple[float, float]
    """For bullish and for bearish, relative to neutral."""
    groups: dict[str, GroupFacts]
    trained_on: dict[str, int]
    made_of: dict[str, str]
    """Checksums of the files it depends on: when those change, it has to be trained again."""


class Tables(msgspec.Struct, frozen=True):
    rarity: bytes
    bullish: array[int]
    bearish: array[int]

    def packed(self) -> bytes:
        return self.rarity + self.bullish.tobytes() + self.bearish.tobytes()


class Weights(msgspec.Struct, frozen=True):
    facts: ModelFacts
    tables: dict[str, Tables]
    checksum: str = ""

    def as_bytes(self) -> bytes:
        packed = b"".join(self.tables[group].packed() for group in GROUPS)
        return msgspec.json.encode(self.facts) + b"\n" + zlib.compress(packed, 9)


def read_weights(path: Path) -> Weights:
    whole = path.read_bytes()
    head, _, packed = whole.partition(b"\n")
    try:
        facts = msgspec.json.decode(head, type=ModelFacts)
        content = zlib.decompress(packed)
        return Weights(facts, read_tables(facts, content), hashlib.sha256(whole).hexdigest()[:12])
    except (ValueError, KeyError, zlib.error) as error:
        raise BadModel(
            f"{path} is not a trained model: {error}. Fetch it from the repository again."
        ) from None


def read_tables(facts: ModelFacts, content: bytes) -> dict[str, Tables]:
    tables = {}
    start = 0
    for group in GROUPS:
        size = facts.groups[group].size
        parts = [content[start + part * size : start + (part + 1) * size] for part in range(3)]
        tables[group] = Tables(parts[0], array("b", parts[1]), array("b", parts[2]))
        start += 3 * size
    if len(content) != start:
        raise ValueError(f"its tables have {len(content)} bytes, not {start}")
    return tables


def place(feature: str, size: int) -> int:
    return zlib.crc32(feature.encode("utf-8", "surrogatepass")) & (size - 1)
