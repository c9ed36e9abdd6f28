"""What moves which way in a title, and what that is said of, as features."""

from __future__ import annotations

from collections.abc import Sequence

from .leaning import DIRECTIONS, leanings, said_of, turn
from .lexicon import Kind

OWN, RIVAL, CURRENCY = "own", "rival", "fx."
# The assets that a category is about. Any other is a rival, whose fortune is not the item's own.
ASSETS = {"gold": "gold", "crypto": "coin", "macro": "stocks", "": "stocks"}
RIVALS = {"gold", "coin", "stocks"}


def guessed(found: Sequence[Kind]) -> str:
    """A category for a title that came without one; empty for companies and the rest."""
    first = next((kind.name for kind in found if kind.name in RIVALS or kind.name.startswith(CURRENCY)), "")
    if first.startswith(CURRENCY):
        return "forex"
    return {"gold": "gold", "coin": "crypto"}.get(first, "")


def in_roles(found: Sequence[Kind], category: str) -> list[Kind]:
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


def signs(roles: Sequence[Kind], category: str) -> list[str]:
    names = [kind.name for kind in roles]
    ends = ["^", *names, "$"]
    return [
        *clause_marks(names),
        *(f"{a}>{b}" for a, b in zip(ends, ends[1:], strict=False)),
        *(f"{a}>{b}>{c}" for a, b, c in zip(ends, ends[1:], ends[2:], strict=False)),
        *events(roles),
        *leaning_signs(roles, category),
    ]


def clause_marks(names: Sequence[str]) -> list[str]:
    """What stands before the first reason is said of the asset; what follows explains it."""
    marks = []
    clause = "M"
    for name in names:
        if name == "because":
            clause = "R"
        else:
            marks.append(f"{clause}:{name}")
    return marks


def events(roles: Sequence[Kind]) -> list[str]:
    """Directions with what they are said of."""
    found = []
    clause = "M"
    for at, kind in enumerate(roles):
        if kind.name == "because":
            clause = "R"
        if kind.name in DIRECTIONS:
            turned = DIRECTIONS[kind.name] * turn(roles, at)
            found.append(f"{clause}!{said_of(roles, at)}{turned:+d}")
    return found


def leaning_signs(roles: Sequence[Kind], category: str) -> list[str]:
    found = list(leanings(roles, category))
    seen = [f"{clause}{value:+d}" for clause, value in found]
    for clause in "MR":
        total = sum(value for each, value in found if each == clause)
        seen.append(f"lean {clause} {(total > 0) - (total < 0):+d}")
    if found:
        seen.append(f"first {found[0][1]:+d}")
    return seen
