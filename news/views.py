"""GET /api/news: what staff published, newest first."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import Any

from django.http import HttpRequest

from accounts.api import Answer, ApiViewSet, encode, iso_time
from accounts.schema import describes
from accounts.statements import Statement
from accounts.threads import in_thread

from .models import NewsItem, sentiment_label
from .serializers import NewsListSerializer, NewsQuerySerializer

COLUMNS = ("title", "category", "sentiment_score", "published_at")


class NewsViewSet(ApiViewSet):
    @describes(
        "listNews",
        NewsListSerializer,
        "Curated news with sentiment",
        tag="News",
        details="Newest first. The label follows from the score: bullish from 0.15, bearish to −0.15.",
        query=[NewsQuerySerializer],
        refused_queries=["category=stocks", "limit=501", "limit=many", "expand=author"],
    )
    async def list(self, request: HttpRequest) -> Answer:
        wanted = self.parameters(request, NewsQuerySerializer)
        category, limit, expansions = wanted["category"], wanted["limit"], wanted["expand"]
        if expansions:
            return Answer(await in_thread(read_expanded, category, limit, expansions))
        return Answer(await in_thread(read_feed, category, limit))


def read_feed(categories: tuple[str, ...], limit: int) -> bytes:
    return b'{"items":[%s]}' % b",".join(
        encode_item(*row) for row in feed_statement(categories, limit).rows()
    )


@lru_cache(maxsize=512)
def feed_statement(categories: tuple[str, ...], limit: int) -> Statement:
    return Statement(NewsItem.objects.for_feed().in_categories(categories).values_list(*COLUMNS)[:limit])


@lru_cache(maxsize=4096)
def encode_item(title: str, category: str, score: float, published_at: datetime) -> bytes:
    """Remembered by all that it is made of."""
    return encode(describe(title, category, score, published_at))


def read_expanded(categories: tuple[str, ...], limit: int, expansions: tuple[str, ...]) -> bytes:
    news = NewsItem.objects.for_feed().in_categories(categories)
    if "symbols" in expansions:
        items = [describe_item(item, expansions) for item in news.prefetch_related("symbols")[:limit]]
    else:
        rows = news.values_list(*COLUMNS, *expansions)[:limit]
        items = [describe(*row[:4]) | dict(zip(expansions, row[4:], strict=True)) for row in rows]
    return encode({"items": items})


def describe(title: str, category: str, score: float, published_at: datetime) -> dict[str, Any]:
    return {
        "title": title,
        "category": category,
        "sentiment": sentiment_label(score),
        "sentiment_score": score,
        "timestamp": iso_time(published_at),
    }


def describe_item(item: NewsItem, expansions: tuple[str, ...]) -> dict[str, Any]:
    score = item.sentiment_score or 0.0
    more = {name: getattr(item, name) for name in expansions if name != "symbols"}
    symbols = sorted(instrument.symbol for instrument in item.symbols.all())
    return describe(item.title, item.category, score, item.published_at) | more | {"symbols": symbols}
