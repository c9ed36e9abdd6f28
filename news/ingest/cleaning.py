"""Text of a stranger becomes a line of plain text: no markup, nothing invisible, no more than fits."""

from __future__ import annotations

import html
import unicodedata

import nh3

LONGEST_TITLE = 300
LONGEST_SUMMARY = 2_000
# Cleaning costs by length, and whatever stands this far behind is cut off anyway.
LONGEST_READ = 20_000
# They shape letters in several scripts and emoji; every other format character hides or turns text.
JOINERS = "\u200c\u200d"
DROPPED = ("Cf", "Cs", "Co", "Cn")
SPACES = ("Cc", "Zl", "Zp", "Zs")
# More marks on one letter than any script stacks are there to cover the lines around.
MOST_MARKS = 4


def clean(text: str, longest: int) -> str:
    """Without tags, with entities unescaped once, on one line."""
    # Half a surrogate pair is no letter of any text, and cannot be handed on.
    whole = text[:LONGEST_READ].encode(errors="ignore").decode()
    without_tags = nh3.clean(whole, tags=set())
    plain = "".join(visible(unicodedata.normalize("NFC", html.unescape(without_tags))))
    return shorten(" ".join(plain.split()), longest)


def visible(text: str) -> list[str]:
    kept: list[str] = []
    marks = 0
    for letter in text:
        kind = unicodedata.category(letter)
        marks = marks + 1 if kind in ("Mn", "Me") else 0
        if kind in SPACES:
            kept.append(" ")
        elif (kind not in DROPPED or letter in JOINERS) and marks <= MOST_MARKS:
            kept.append(letter)
    return kept


def shorten(text: str, longest: int) -> str:
    """Cut between words where that does not lose half of it."""
    if len(text) <= longest:
        return text
    cut = text[: longest - 1]
    at_word = cut.rpartition(" ")[0]
    return (at_word if len(at_word) > longest // 2 else cut).rstrip(" ,;:–-") + "…"
