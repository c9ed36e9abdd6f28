"""The movements in a title, and whether each is good or bad for the asset of its category."""

import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

# The kinds of words, such as movements, assets and things that are bad when they rise (lexicon.txt).
FILE = Path(__file__).with_name("lexicon.txt")
LONGEST_PHRASE = 5
CODES = "usd|eur|gbp|jpy|chf|aud|nzd|cad|cnh|cny|inr|mxn|sek|nok|zar|try|brl|krw|sgd|xau|xag|btc|eth"
PAIR = re.compile(rf"({CODES})/?(?:{CODES})")
NOTHING = ""


class WordKind(NamedTuple):
    name: str
    start: int
    end: int


@cache
def lexicon() -> dict[str, str]:
    kinds: dict[str, str] = {}
    for line in FILE.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, _, words = line.partition(":")
            for word in words.split():
                if kinds.setdefault(word.replace("_", " "), name) != name:
                    raise ValueError(f"{word!r} is of two kinds: {kinds[word.replace('_', ' ')]} and {name}")
    return kinds


@cache
def phrase_starts() -> frozenset[str]:
    return frozenset(phrase.split()[0] for phrase in lexicon() if " " in phrase)


def kinds(words: Sequence[str]) -> Iterator[WordKind]:
    """The kinds of words in a title, in order; the longest phrase wins."""
    at = 0
    while at < len(words):
        name, length = _phrase(words, at) if words[at] in phrase_starts() else (NOTHING, 0)
        if not name:
            name, length = kind_of(words[at]), 1
        if name:
            yield WordKind(name, at, at + length)
        at += length


def _phrase(words: Sequence[str], at: int) -> tuple[str, int]:
    known = lexicon()
    for length in range(min(LONGEST_PHRASE, len(words) - at), 1, -1):
        if name := known.get(" ".join(words[at : at + length])):
            return name, length
    return NOTHING, 0


@lru_cache(maxsize=8192)
def kind_of(word: str) -> str:
    """The kind of a word or of its base form; for a pair of currencies, the kind of the base."""
    known = lexicon()
    if pair := PAIR.fullmatch(word):
        return known.get(pair[1], NOTHING)
    return next((known[form] for form in forms(word) if form in known), NOTHING)


def forms(word: str) -> Iterator[str]:
    yield word
    for ending in ("s", "es", "d", "ed", "ing"):
        if word.endswith(ending) and len(word) - len(ending) > 2:
            stem = word.removesuffix(ending)
            yield stem
            if ending == "ing":
                yield stem + "e"
            if ending in ("ed", "ing") and stem[-1] == stem[-2]:
                yield stem[:-1]


OWN, RIVAL, CURRENCY = "own", "rival", "fx."
# The assets that a category is about. Any other asset is a rival, whose rise is not the item's own.
ASSETS = {"gold": "gold", "crypto": "coin", "macro": "stocks", "": "stocks"}
RIVALS = {"gold", "coin", "stocks"}
DIRECTIONS = {"up": 1, "down": -1, "more": 1, "less": -1, "hit": -1, "undo": -1}
TRANSITIVE = {"more", "less", "hit", "undo"}
# Whether a rise is good; for the kinds further down, that depends on the category.
WORTH = {
    "own": 1,
    "goodthing": 1,
    "badthing": -1,
    "bonds": 1,
    "trade": -1,
    "oil": -1,
    "haven": -1,
    "price": 0,
}
RISES_WITH = {
    "forex": {"rate": 1, "yield": 1, "rival": -1, "rival:usd": -1},
    "gold": {"haven": 1, "trade": 1},
}
FALLS_ELSEWHERE = {"rate": -1, "yield": -1, "rival:usd": -1, "rival": 0}
VALUES = {"good": 1, "bad": -1, "beyond": 1, "short": -1}
POLICY = {"hawk": 1, "dove": -1}
TURN_REACH, OBJECT_REACH, ADJECTIVE_REACH = 2, 4, 1


def guessed(found: Sequence[WordKind]) -> str:
    """The category of a title that came without one; empty for companies and the rest."""
    first = next((kind.name for kind in found if kind.name in RIVALS or kind.name.startswith(CURRENCY)), "")
    if first.startswith(CURRENCY):
        return "forex"
    return {"gold": "gold", "coin": "crypto"}.get(first, "")


def in_roles(found: Sequence[WordKind], category: str) -> list[WordKind]:
    """Assets become own or rival. In forex the currency named first is the item's own."""
    mine = ASSETS.get(category, "")
    if category == "forex":
        mine = next((kind.name for kind in found if kind.name.startswith(CURRENCY)), "")
    return [kind._replace(name=role(kind.name, mine)) for kind in found]


def role(name: str, mine: str) -> str:
    if name == mine:
        return OWN
    if name == "fx.usd":
        return "rival:usd"
    return RIVAL if name in RIVALS or name.startswith(CURRENCY) else name


def signs(roles: Sequence[WordKind], category: str) -> list[str]:
    """The kinds, each alone, in pairs and in threes, what moves which way, and whether that is good."""
    ends = ["^", *(kind.name for kind in roles), "$"]
    return [
        *(f"{clause}:{kind.name}" for clause, _, kind in in_clauses(roles) if kind.name != "because"),
        *(f"{a}>{b}" for a, b in zip(ends, ends[1:], strict=False)),
        *(f"{a}>{b}>{c}" for a, b, c in zip(ends, ends[1:], ends[2:], strict=False)),
        *events(roles),
        *leaning_signs(roles, category),
    ]


def in_clauses(roles: Sequence[WordKind]) -> Iterator[tuple[str, int, WordKind]]:
    """Each kind with its place and its clause: M is the statement, R whatever follows the first “because”."""
    clause = "M"
    for at, kind in enumerate(roles):
        if kind.name == "because":
            clause = "R"
        yield clause, at, kind


def events(roles: Sequence[WordKind]) -> Iterator[str]:
    """Each direction together with the thing that moves."""
    for clause, at, kind in in_clauses(roles):
        if kind.name in DIRECTIONS:
            turned = DIRECTIONS[kind.name] * turn(roles, at)
            yield f"{clause}!{said_of(roles, at)}{turned:+d}"


def leaning_signs(roles: Sequence[WordKind], category: str) -> list[str]:
    found = list(leanings(roles, category))
    seen = [f"{clause}{value:+d}" for clause, value in found]
    for clause in "MR":
        total = sum(value for each, value in found if each == clause)
        seen.append(f"lean {clause} {(total > 0) - (total < 0):+d}")
    if found:
        seen.append(f"first {found[0][1]:+d}")
    return seen


def worth(thing: str, category: str) -> int:
    return RISES_WITH.get(category, {}).get(thing, WORTH.get(thing, FALLS_ELSEWHERE.get(thing, 0)))


def is_thing(name: str) -> bool:
    return name in WORTH or name in FALLS_ELSEWHERE


def leanings(roles: Sequence[WordKind], category: str) -> Iterator[tuple[str, int]]:
    """The clause and the sign of everything that has one."""
    for clause, at, _ in in_clauses(roles):
        if value := value_at(roles, at, category):
            yield clause, value * turn(roles, at)


def value_at(roles: Sequence[WordKind], at: int, category: str) -> int:
    name = roles[at].name
    if name in VALUES:
        return VALUES[name]
    if name in POLICY:
        return POLICY[name] * worth("rate", category)
    if name not in DIRECTIONS or turns_next(roles, at):
        return 0
    thing = said_of(roles, at)
    return DIRECTIONS[name] * (worth(thing, category) if thing else 1)


def said_of(roles: Sequence[WordKind], at: int) -> str:
    """The thing a direction is about: the one after an adjective or transitive verb, else the last before."""
    reach = OBJECT_REACH if roles[at].name in TRANSITIVE else ADJECTIVE_REACH
    after = roles[at + 1] if at + 1 < len(roles) else None
    if after and is_thing(after.name) and after.start - roles[at].end < reach:
        return after.name
    return next((kind.name for kind in reversed(roles[:at]) if is_thing(kind.name)), "")


def turns_next(roles: Sequence[WordKind], at: int) -> bool:
    """Whether this undoes the following sign, and so has none of its own."""
    after = roles[at + 1] if at + 1 < len(roles) else None
    has_sign = after is not None and (
        after.name in VALUES or after.name in POLICY or after.name in ("up", "down")
    )
    return roles[at].name == "undo" and has_sign


def turn(roles: Sequence[WordKind], at: int) -> int:
    """-1 if a negation or undoing before it, or an end after it, reverses a sign."""
    before = roles[at - 1] if at else None
    after = roles[at + 1] if at + 1 < len(roles) else None
    turns = 1
    if before and before.name in ("not", "undo") and roles[at].start - before.end <= TURN_REACH:
        turns = -turns
    if after and after.name in ("end", "short") and after.start - roles[at].end <= TURN_REACH:
        turns = -turns
    return turns
