from __future__ import annotations

from typing import Any

from rest_framework import serializers

from accounts.parameters import IntegerParameter, QuerySerializer, WordListParameter
from accounts.schema import BodySerializer

from .models import NewsItem

EXPANSIONS = ("id", "url", "source", "summary", "symbols", "model")
LABELS = ("bullish", "neutral", "bearish")


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
