"""Which way a score points for an instrument. Pure.

A score is about one asset, that of the item's category (docs/sentiment.md). A price is of one asset in
another, so what is good for the yen is bad for USDJPY; and what is good for stocks says nothing of oil."""

from __future__ import annotations

import re

from news.sentiment.lexicon import kinds
from news.sentiment.signs import CURRENCY
from news.sentiment.text import plain, words

PAIR = re.compile(r"([A-Z]{3})[^A-Z]?([A-Z]{3})(?![A-Z])")
CATEGORIES = {"forex": "forex", "crypto": "crypto", "index": "macro", "stock": "macro"}
METALS = ("XAU", "XAG", "XPT", "XPD")


def category_of(symbol: str, kind: str) -> str:
    """Whose news are about it, by its kind of instrument; empty for oil and the like: no category is."""
    if kind == "commodity":
        return "gold" if symbol.startswith(METALS) else ""
    return CATEGORIES[kind]


def side_of(title: str, category: str, symbol: str, kind: str, *, is_named: bool) -> int:
    """1 where a positive score should raise the price, -1 where lower it, 0 where it says nothing."""
    if category == "forex":
        return _side_of_pair(title, symbol, is_named=is_named)
    return 1 if category_of(symbol, kind) == category else 0


def currency_of(title: str) -> str:
    """The one named first, of a pair its base: the one that a forex score is about. Empty where none is."""
    found = (kind.name for kind in kinds(words(plain(title))) if kind.name.startswith(CURRENCY))
    return next(found, "").removeprefix(CURRENCY).upper()


def _side_of_pair(title: str, symbol: str, *, is_named: bool) -> int:
    pair, currency = PAIR.match(symbol), currency_of(title)
    if pair is None:
        return 0
    if not currency:
        # Staff tied it to the pair, and of a pair the score is about the base.
        return 1 if is_named else 0
    return (currency == pair[1]) - (currency == pair[2])
