"""The built-in model, always available: linear, in pure Python, read from the trained file beside it.

The file is a line of JSON that describes it, then three packed tables for each group of features. A
feature's place in the tables of its group is a checksum of its text. There stand its rarity (in sixteenths)
and, multiplied by it, its weights for bullish and for bearish, both against neutral, as signed bytes."""

from __future__ import annotations

import hashlib
import re
import unicodedata
import zlib
from array import array
from collections.abc import Sequence
from functools import cache, lru_cache, partial
from math import exp, sqrt
from pathlib import Path
from typing import NamedTuple

import msgspec

from news.labels import BEARISH_FROM, BULLISH_FROM

from .signs import WordKind, guessed, in_roles, kinds, signs

# The features of a title: its words, the pieces of its words, the signs in it, and its figures.
# Titles of items have 300 characters at most; anything longer is no headline and is read up to here.
LONGEST = 400
PLAIN = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "–": " ", "—": " ", "−": "-", "\u200b": ""})
WORD = re.compile(r"[-+]?[$£€¥]?\d[\d,.]*|[^\W\d_]+(?:[/&'.][^\W\d_]+)*|%")
ANY_NUMBER = "0"


class Features(NamedTuple):
    words: list[str]
    """The words from which the pieces are cut."""
    terms: list[str]
    signs: list[str]
    category: str
    """As given, or guessed from the title."""


def features(title: str, category: str = "") -> Features:
    text = plain(title)
    read = words(text)
    found = list(kinds(read))
    category = category or guessed(found)
    roles = in_roles(found, category)
    seen = [*signs(roles, category), *cues(text, roles)]
    crossed = [f"{category}|{sign}" for sign in seen]
    return Features(read, terms(read, category), [*seen, *crossed], category)


def terms(read: Sequence[str], category: str) -> list[str]:
    ends = ["^", *read, "$"]
    pairs = [f"{one} {other}" for one, other in zip(ends, ends[1:], strict=False)]
    return [*read, *pairs, *(f"{category}|{word}" for word in read)]


def cues(text: str, roles: Sequence[WordKind]) -> list[str]:
    found = ["?"] if text.rstrip().endswith("?") else []
    if outcome := surprise(text):
        thing = next((kind.name for kind in roles if kind.name in ("goodthing", "badthing", "price")), "")
        found += [f"figures {outcome}", f"figures {outcome} {thing}"]
    return found


def plain(title: str) -> str:
    """Lower case, with characters that look alike made equal, and no longer than a title can be."""
    return unicodedata.normalize("NFKC", title[:LONGEST]).translate(PLAIN).lower()


def words(text: str) -> list[str]:
    """The words of a plain text. `U.S.` and `it's` become `us` and `it`; a number becomes `0`."""
    found = []
    for word in WORD.findall(text):
        if word[-1].isdigit() or word[-1] in ",.":
            found.append(ANY_NUMBER)
        else:
            found.append(word.removesuffix("'s").replace(".", ""))
    return found


# A number matches from its first digit only: trying each digit of a long number would take forever.
NUMBER = r"([-+]?)[$£€¥]?(?<!\d)(?<!\d,)(\d[\d,]*(?:\.\d+)?) ?(%|k\b|m\b|mln|bn?\b|million|billion|thousand)?"
BETWEEN, BEFORE = r"[^\d+-]{0,24}?", r"[^\d+-]{0,16}?"
AGAINST = re.compile(rf"{NUMBER}{BETWEEN}\b(?:vs|versus|against|est|exp|forecast)\b{BEFORE}{NUMBER}")
COMPARED = re.compile(rf"{NUMBER}{BETWEEN}\b(?:above|below|from)\b{BEFORE}{NUMBER}")
EXPECTATION = re.compile(r"\b(?:estimate|forecast|expected|consensus)")
SHRINKS = re.compile(
    r"\b(?:contract|declin|fall|fell|drop|shr[aiu]nk|slump|tumbl|plung|los[et])\w*(?: by)? *$"
)
WRITTEN_OUT = 1000
SIZES = {
    "k": 1e3,
    "thousand": 1e3,
    "m": 1e6,
    "mln": 1e6,
    "million": 1e6,
    "b": 1e9,
    "bn": 1e9,
    "billion": 1e9,
}


def surprise(text: str) -> str:
    """`beyond`, `short` or `level` if a plain text compares two figures, otherwise empty."""
    found = AGAINST.search(text)
    if found is None and EXPECTATION.search(text):
        found = COMPARED.search(text)
    if found is None:
        return ""
    sign, actual, size, other_sign, expected, other_size = found.groups()
    # "Contracts 0.2% vs 0.1% expected": both are losses, though neither has a sign.
    if not sign and SHRINKS.search(text[: found.start()]):
        sign = "-"
        other_sign = other_sign or "-"
    difference = valued(sign, actual, size, other_size) - valued(other_sign, expected, other_size, size)
    if not difference:
        return "level"
    return "beyond" if difference > 0 else "short"


def valued(sign: str, digits: str, size: str | None, other_size: str | None) -> float:
    value = float(digits.replace(",", ""))
    # In "8.1 vs 7.7 million" both are millions, but 22,000 is written out.
    value *= SIZES.get(size or (other_size if value < WRITTEN_OUT else "") or "", 1.0)
    return -value if sign == "-" else value


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
