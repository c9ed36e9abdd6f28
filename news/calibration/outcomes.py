"""Outcomes are opened when an item enters the feed, before anybody can know how they end.

A score is about one asset, that of the item's category (docs/sentiment.md). A price is of one asset in
another, so what is good for the yen is bad for USDJPY; and what is good for stocks says nothing of oil."""

import re
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta

from news.labels import sentiment_label
from news.models import NewsItem, Outcome
from news.models.outcomes import HORIZONS_H, INVERSE
from news.sentiment.features import plain, words
from news.sentiment.lexicon import kinds
from news.sentiment.signs import CURRENCY

# Used for items that name no instrument which their score is about; macro means risk assets.
MAIN_SYMBOLS = {"forex": "EURUSD", "gold": "XAUUSD", "crypto": "BTCUSD", "macro": "US500"}
KINDS = {"forex": "forex", "gold": "commodity", "crypto": "crypto", "macro": "index"}
Named = tuple[str, str]
"""The symbol and the type of an instrument."""
LONGEST = Outcome._meta.get_field("symbols").max_length or 0
PAIR = re.compile(r"([A-Z]{3})[^A-Z]?([A-Z]{3})(?![A-Z])")
CATEGORIES = {"forex": "forex", "crypto": "crypto", "index": "macro", "stock": "macro"}
METALS = ("XAU", "XAG", "XPT", "XPD")


def open_outcomes(items: Sequence[NewsItem], entered_at: datetime) -> None:
    """An item that has entered before keeps its first outcomes."""
    symbols = _symbols_of(items)
    Outcome.objects.bulk_create(
        (
            Outcome(
                item=item,
                horizon=horizon,
                category=item.category,
                score=(score := item.sentiment_score or 0.0),
                label=sentiment_label(score),
                symbols=symbols[item.pk],
                entered_at=entered_at,
                due_at=entered_at + timedelta(hours=hours),
            )
            for item in items
            for horizon, hours in HORIZONS_H.items()
        ),
        ignore_conflicts=True,
    )


def _symbols_of(items: Sequence[NewsItem]) -> dict[int, str]:
    named: defaultdict[int, list[Named]] = defaultdict(list)
    through = NewsItem.symbols.through.objects.filter(newsitem__in=[item.pk for item in items])
    columns = ("newsitem_id", "instrument__symbol", "instrument__type")
    for pk, symbol, kind in through.order_by("instrument__symbol").values_list(*columns):
        named[pk].append((symbol, kind))
    return {item.pk: _judged_by(item, named[item.pk]) for item in items}


def _judged_by(item: NewsItem, named: Sequence[Named]) -> str:
    """Empty where no price reflects the news: EURUSD says nothing about the peso."""
    main = (MAIN_SYMBOLS[item.category], KINDS[item.category])
    return _sided(item, named, is_named=True) or _sided(item, [main], is_named=False)


def _sided(item: NewsItem, instruments: Sequence[Named], *, is_named: bool) -> str:
    sides = (
        (symbol, side_of(item.title, item.category, symbol, kind, is_named=is_named))
        for symbol, kind in instruments
    )
    joined = " ".join(symbol if side > 0 else f"{INVERSE}{symbol}" for symbol, side in sides if side)
    return joined if len(joined) <= LONGEST else joined[: LONGEST + 1].rpartition(" ")[0]


def category_of(symbol: str, kind: str) -> str:
    """The category whose news concern an instrument; empty for oil and others that no category covers."""
    if kind == "commodity":
        return "gold" if symbol.startswith(METALS) else ""
    return CATEGORIES[kind]


def side_of(title: str, category: str, symbol: str, kind: str, *, is_named: bool) -> int:
    """1 if a positive score should raise the price, -1 if it should lower it, 0 if neither."""
    if category == "forex":
        return _side_of_pair(title, symbol, is_named=is_named)
    return 1 if category_of(symbol, kind) == category else 0


def currency_of(title: str) -> str:
    """The currency that a forex score is about: the first one named, or the base of a pair; or empty."""
    found = (kind.name for kind in kinds(words(plain(title))) if kind.name.startswith(CURRENCY))
    return next(found, "").removeprefix(CURRENCY).upper()


def _side_of_pair(title: str, symbol: str, *, is_named: bool) -> int:
    pair, currency = PAIR.match(symbol), currency_of(title)
    if pair is None:
        return 0
    if not currency:
        # Staff linked the item to the pair, and the score is then about the base.
        return 1 if is_named else 0
    return (currency == pair[1]) - (currency == pair[2])
