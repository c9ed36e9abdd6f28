"""The news as they are sent: one query for whatever was asked for, and each item encoded once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery

from accounts.api import encode, iso_time
from accounts.statements import Statement

from .joined import Joined
from .models import NewsItem, sentiment_label

COLUMNS = ("title", "category", "sentiment_score", "published_at")
SYMBOLS = "symbols"


class Newest(Statement):
    """The newest rows of several queries that each begin with their newest. With a category IN (…) instead, a
    database reads the whole feed for two categories that are rare in it."""

    def __init__(self, parts: Sequence[QuerySet[Any, Any]], limit: int) -> None:
        compiled = [part.query.sql_with_params() for part in parts]
        rows = " UNION ALL ".join(f"SELECT * FROM ({sql}) AS part" for sql, _ in compiled)  # noqa: S608 - Django's SQL
        order = '"published_at" DESC, "id" DESC'
        self._sql = f"SELECT * FROM ({rows}) AS feed ORDER BY {order} LIMIT {limit:d}"  # noqa: S608 - as above
        self._params = tuple(param for _, params in compiled for param in params)


def read_feed(categories: tuple[str, ...], limit: int, expansions: tuple[str, ...]) -> bytes:
    rows = feed_statement(categories, limit, expansions).rows()
    return b'{"items":[%s]}' % b",".join(encode_item(expansions, *row) for row in rows)


@lru_cache(maxsize=512)
def feed_statement(categories: tuple[str, ...], limit: int, expansions: tuple[str, ...]) -> Statement:
    news = NewsItem.objects.for_feed()
    if SYMBOLS in expansions:
        news = news.annotate(joined=Subquery(joined_symbols()))
    names = ["joined" if name == SYMBOLS else name for name in expansions if name != "id"]
    columns = (*COLUMNS, "id", *names)
    if len(categories) in (0, len(NewsItem.Category)):
        return Statement(news.values_list(*columns)[:limit])
    return Newest([news.filter(category=name).values_list(*columns)[:limit] for name in categories], limit)


def joined_symbols() -> QuerySet[Any, Any]:
    through: QuerySet[Any, Any] = NewsItem.symbols.through.objects.filter(newsitem=OuterRef("pk"))
    return through.order_by().values("newsitem").values_list(Joined("instrument__symbol"))


@lru_cache(maxsize=4096)
def encode_item(
    expansions: tuple[str, ...],
    title: str,
    category: str,
    score: float,
    published_at: datetime,
    item_id: int,
    *expanded: Any,
) -> bytes:
    """Remembered by all that it is made of."""
    item = {
        "title": title,
        "category": category,
        "sentiment": sentiment_label(score),
        "sentiment_score": score,
        "timestamp": iso_time(published_at),
    }
    values = iter(expanded)
    for name in expansions:
        item[name] = item_id if name == "id" else shown(name, next(values))
    return encode(item)


def shown(name: str, value: Any) -> Any:
    """Symbols come joined and in any order."""
    if name != SYMBOLS:
        return value
    return sorted(value.split(",")) if value else []
