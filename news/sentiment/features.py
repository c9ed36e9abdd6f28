"""The features of a title: its words, the pieces of its words, the signs in it, and its figures."""

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from .lexicon import WordKind, kinds
from .signs import guessed, in_roles, signs

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
