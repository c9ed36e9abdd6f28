from __future__ import annotations

from typing import Any

from rest_framework import serializers

from accounts.parameters import IntegerParameter, QuerySerializer, WordListParameter

from .models import NewsItem

EXPANSIONS = ("id", "url", "source", "summary", "symbols", "model")
LABELS = ("bullish", "neutral", "bearish")


class NewsQuerySerializer(QuerySerializer):
    category = WordListParameter(NewsItem.Category.values, help_text="Comma-separated.")
    limit = IntegerParameter(default=20, max_value=500, help_text="Maximum number of items.")
    expand = WordListParameter(EXPANSIONS, help_text="More fields for each item.")


class NewsItemSerializer(serializers.Serializer[Any]):
    title = serializers.CharField()
    category = serializers.ChoiceField(choices=NewsItem.Category.values)
    sentiment = serializers.ChoiceField(choices=LABELS)
    sentiment_score = serializers.FloatField(min_value=-1, max_value=1)
    timestamp = serializers.DateTimeField()


class NewsListSerializer(serializers.Serializer[Any]):
    items = NewsItemSerializer(many=True)
