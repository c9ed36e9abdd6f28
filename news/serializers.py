from __future__ import annotations

from typing import Any

from rest_framework import serializers

from accounts.parameters import IntegerParameter, QuerySerializer, WordListParameter
from accounts.schema import BodySerializer

from .labels import LABELS
from .models import NewsItem
from .models.outcomes import HORIZONS_H

EXPANSIONS = ("id", "url", "source", "summary", "symbols", "model")


class NewsQuerySerializer(QuerySerializer):
    category = WordListParameter(
        NewsItem.Category.values, help_text="Only these categories, separated by commas; all by default."
    )
    limit = IntegerParameter(default=20, max_value=500, help_text="Maximum number of items.")
    expand = WordListParameter(EXPANSIONS, help_text="More fields for each item, separated by commas.")


class NewsItemSerializer(serializers.Serializer[Any]):
    title = serializers.CharField()
    category = serializers.ChoiceField(choices=NewsItem.Category.values)
    sentiment = serializers.ChoiceField(choices=LABELS, help_text="Bullish from 0.15, bearish to −0.15.")
    sentiment_score = serializers.FloatField(min_value=-1, max_value=1, help_text="−1 is bearish, 1 bullish.")
    timestamp = serializers.DateTimeField()


class ExpandedNewsItemSerializer(NewsItemSerializer):
    """A news item, with what `expand` asked for."""

    class Meta:
        ref_name = "NewsItem"

    id = serializers.IntegerField(required=False, help_text="Only on request.")
    url = serializers.CharField(required=False, help_text="Empty for our own items. Only on request.")
    # The metaclass takes fields off the class, so this hides no attribute of Field.
    source = serializers.CharField(  # type: ignore[assignment]
        required=False, help_text="Only on request."
    )
    summary = serializers.CharField(required=False, help_text="Only on request.")
    symbols = serializers.ListField(
        child=serializers.CharField(), required=False, help_text="Instruments it is about. Only on request."
    )
    model = serializers.CharField(
        required=False, help_text="What scored it; `staff` after an override. Only on request."
    )


class NewsListSerializer(BodySerializer):
    examples = {
        "Two items": {
            "items": [
                {
                    "title": "Gold steadies as real yields slip",
                    "category": "gold",
                    "sentiment": "bullish",
                    "sentiment_score": 0.42,
                    "timestamp": "2026-11-20T13:55:00.000Z",
                },
                {
                    "title": "Euro-zone factory output falls more than forecast",
                    "category": "macro",
                    "sentiment": "bearish",
                    "sentiment_score": -0.38,
                    "timestamp": "2026-11-20T10:00:00.000Z",
                },
            ]
        },
        "With source and symbols": {
            "items": [
                {
                    "title": "Gold steadies as real yields slip",
                    "category": "gold",
                    "sentiment": "bullish",
                    "sentiment_score": 0.42,
                    "timestamp": "2026-11-20T13:55:00.000Z",
                    "source": "Tickwire desk",
                    "symbols": ["XAUUSD"],
                }
            ]
        },
    }

    items = ExpandedNewsItemSerializer(many=True)


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
