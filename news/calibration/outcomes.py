"""Outcomes are opened when an item enters the feed, before anybody can know how they end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta

from news.labels import sentiment_label
from news.models import NewsItem, Outcome
from news.models.outcomes import HORIZONS_H

# What items that name no instrument of their own are judged by; macro is about risk assets.
MAIN_SYMBOLS = {"forex": "EURUSD", "gold": "XAUUSD", "crypto": "BTCUSD", "macro": "US500"}
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
    named: defaultdict[int, list[str]] = defaultdict(list)
    through = NewsItem.symbols.through.objects.filter(newsitem__in=[item.pk for item in items])
    for pk, symbol in through.order_by("instrument__symbol").values_list("newsitem_id", "instrument__symbol"):
        named[pk].append(symbol)
    return {item.pk: _joined(named[item.pk]) or MAIN_SYMBOLS[item.category] for item in items}


def _joined(symbols: Sequence[str]) -> str:
    joined = " ".join(symbols)
    return joined if len(joined) <= LONGEST else joined[: LONGEST + 1].rpartition(" ")[0]
