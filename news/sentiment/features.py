"""What the model sees in a title: its words, the pieces of its words, and the signs in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .figures import surprise
from .lexicon import Kind, kinds
from .signs import guessed, in_roles, signs
from .text import plain, words

PIECES = (3, 4, 5)


class Features(NamedTuple):
    words: list[str]
    """The words of which the pieces are pieces."""
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


def cues(text: str, roles: Sequence[Kind]) -> list[str]:
    found = ["?"] if text.rstrip().endswith("?") else []
    if outcome := surprise(text):
        thing = next((kind.name for kind in roles if kind.name in ("goodthing", "badthing", "price")), "")
        found += [f"figures {outcome}", f"figures {outcome} {thing}"]
    return found


def pieces(word: str) -> list[str]:
    """A word's runs of letters, with its edges; they carry over to words never seen."""
    edged = f" {word} "
    return [edged[at : at + size] for size in PIECES for at in range(len(edged) - size + 1)]
