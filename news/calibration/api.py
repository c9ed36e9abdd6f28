"""GET /api/news/calibration: what the scores were worth."""

from __future__ import annotations

from typing import Any

import msgspec
from django.http import HttpRequest
from rest_framework import serializers

from accounts.viewset import KeyedViewSet
from core.contract.answers import Answer, iso_time
from core.contract.schema import BodySerializer, describes
from core.plain_json import encode
from news.labels import LABELS
from news.models import NewsItem
from news.models.outcomes import HORIZONS_H

from .figures import ENOUGH, Figures, report


class FiguresSerializer(serializers.Serializer[Any]):
    """How prices moved after the items of a category and a label."""

    class Meta:
        ref_name = "NewsCalibration"

    category = serializers.ChoiceField(choices=NewsItem.Category.values)
    sentiment = serializers.ChoiceField(choices=LABELS)
    horizon = serializers.ChoiceField(choices=list(HORIZONS_H), help_text="Since the item entered the feed.")
    count = serializers.IntegerField(min_value=0, help_text="Items with a price at both ends.")
    left_out = serializers.IntegerField(
        min_value=0, help_text="Items without: the market was closed, or none tells."
    )
    pending = serializers.IntegerField(
        min_value=0, help_text="Items whose horizon has not passed, or whose prices may still come."
    )
    mean_move_percent = serializers.FloatField(allow_null=True)
    median_move_percent = serializers.FloatField(allow_null=True)
    hit_rate = serializers.FloatField(
        allow_null=True,
        min_value=0,
        max_value=1,
        help_text="How often the price went where the label says; null for neutral.",
    )
    too_few = serializers.BooleanField(
        help_text="Whether `count` is below `enough`: such figures say nothing."
    )


class CalibrationSerializer(BodySerializer):
    examples = {
        "One of its rows": {
            "as_of": "2026-11-20T14:00:00.000Z",
            "enough": 30,
            "items": [
                {
                    "category": "gold",
                    "sentiment": "bullish",
                    "horizon": "1h",
                    "count": 412,
                    "left_out": 37,
                    "pending": 2,
                    "mean_move_percent": 0.0312,
                    "median_move_percent": 0.0188,
                    "hit_rate": 0.5461,
                    "too_few": False,
                }
            ],
            "count": 24,
        }
    }

    as_of = serializers.DateTimeField(help_text="When the figures were added up; at most a minute ago.")
    enough = serializers.IntegerField(help_text="From this many items on, figures say something.")
    items = FiguresSerializer(many=True)
    count = serializers.IntegerField()


class CalibrationViewSet(KeyedViewSet):
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
