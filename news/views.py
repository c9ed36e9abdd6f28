"""GET /api/news: what staff published, newest first; GET /api/news/calibration: what it was worth."""

from __future__ import annotations

import msgspec
from django.http import HttpRequest

from accounts.api import Answer, ApiViewSet, encode, iso_time
from accounts.schema import describes
from accounts.threads import in_thread_promptly

from .calibration.figures import ENOUGH, Figures
from .calibration.report import report
from .feed import read_feed
from .serializers import CalibrationSerializer, NewsListSerializer, NewsQuerySerializer


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
        return Answer(
            await in_thread_promptly(read_feed, wanted["category"], wanted["limit"], wanted["expand"])
        )


class CalibrationViewSet(ApiViewSet):
    @describes(
        "getNewsCalibration",
        CalibrationSerializer,
        "How prices moved after news was published",
        tag="News",
        details=(
            "For each category, label and horizon: how far prices moved from the first one after an item "
            "entered the feed to the last one before the horizon ended. Judged by the score with which it "
            "entered, whatever was said later. An item is judged by the instruments that it names and its "
            "score is about, together, or else by its category's main one: EURUSD, XAUUSD, BTCUSD, US500. "
            "News of the currency that a price is counted in are judged by the inverse: those of the yen by "
            "1/USDJPY. Where the market was closed at one of the two moments, or no price tells, the item is "
            "left out and counted so. A bullish item hits when that price rose, a bearish one when it fell; "
            "a neutral one promises nothing."
        ),
    )
    async def retrieve(self, request: HttpRequest) -> Answer:
        at, figures = await report.read()
        items = [describe(row) for row in figures]
        return Answer(encode({"as_of": iso_time(at), "enough": ENOUGH, "items": items, "count": len(items)}))


def describe(row: Figures) -> dict[str, object]:
    return {**msgspec.structs.asdict(row), "too_few": row.too_few}
