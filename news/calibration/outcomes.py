"""Outcomes are opened when an item enters the feed, before anybody can know how they end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta

from news.labels import sentiment_label
from news.models import NewsItem, Outcome
from news.models.outcomes import HORIZONS_H, INVERSE
from news.sides import side_of

# What items are judged by that name no instrument which their score is about; macro is about risk assets.
MAIN_SYMBOLS = {"forex": "EURUSD", "gold": "XAUUSD", "crypto": "BTCUSD", "macro": "US500"}
KINDS = {"forex": "forex", "gold": "commodity", "crypto": "crypto", "macro": "index"}
Named = tuple[str, str]
"""The symbol and the type of an instrument."""
LONGEST = Outcome._meta.get_field("symbols").max_length or 0


def open_outcomes(items: Sequence[NewsItem], entered_at: datetime) -> None:
    """An item that entered before keeps its first ones."""
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
    """Empty where no price tells: what is said of the peso, EURUSD does not know."""
    main = (MAIN_SYMBOLS[item.category], KINDS[item.category])
    return _sided(item, named, is_named=True) or _sided(item, [main], is_named=False)


def _sided(item: NewsItem, instruments: Sequence[Named], *, is_named: bool) -> str:
    sides = {
        symbol: side_of(item.title, item.category, symbol, kind, is_named=is_named)
        for symbol, kind in instruments
    }
    return _joined([symbol if side > 0 else f"{INVERSE}{symbol}" for symbol, side in sides.items() if side])


def _joined(symbols: Sequence[str]) -> str:
    joined = " ".join(symbols)
    return joined if len(joined) <= LONGEST else joined[: LONGEST + 1].rpartition(" ")[0]
