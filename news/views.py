"""GET /api/news: what staff published, newest first."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from accounts.api import Answer, ApiViewSet, encode, iso_time
from accounts.threads import in_thread

from .models import NewsItem, sentiment_label
from .serializers import NewsQuerySerializer

COLUMNS = ("title", "category", "sentiment_score", "published_at")


class NewsViewSet(ApiViewSet):
    async def list(self, request: HttpRequest) -> Answer:
        wanted = self.parameters(request, NewsQuerySerializer)
        items = await in_thread(read_feed, wanted["category"], wanted["limit"], wanted["expand"])
        return Answer(encode({"items": items}))


def read_feed(categories: tuple[str, ...], limit: int, expansions: tuple[str, ...]) -> list[dict[str, Any]]:
    news = NewsItem.objects.for_feed().in_categories(categories)
    if "symbols" in expansions:
        return [describe_item(item, expansions) for item in news.prefetch_related("symbols")[:limit]]
    rows = news.values_list(*COLUMNS, *expansions)[:limit]
    return [describe(*row[:4]) | dict(zip(expansions, row[4:], strict=True)) for row in rows]


def describe(title: str, category: str, score: float, published_at: Any) -> dict[str, Any]:
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
