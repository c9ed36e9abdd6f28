"""The DRF peer's bodies: model serializers, with floats where the specification asks for JSON numbers."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from market.models import Candle, LastQuote
from news.models import NewsItem
from signals_feed.models import Signal


class CandleSerializer(serializers.ModelSerializer[Candle]):
    time = serializers.DateTimeField(source="opened_at")
    open = serializers.FloatField()
    high = serializers.FloatField()
    low = serializers.FloatField()
    close = serializers.FloatField()
    volume = serializers.FloatField()

    class Meta:
        model = Candle
        fields = ("time", "open", "high", "low", "close", "volume")


class NestedQuoteSerializer(serializers.ModelSerializer[LastQuote]):
    bid = serializers.FloatField()
    ask = serializers.FloatField()
    spread = serializers.SerializerMethodField()
    timestamp = serializers.DateTimeField(source="quoted_at")

    class Meta:
        model = LastQuote
        fields: tuple[str, ...] = ("bid", "ask", "spread", "timestamp")

    def get_spread(self, quote: LastQuote) -> float:
        return float((quote.ask or 0) - (quote.bid or 0))


class QuoteSerializer(NestedQuoteSerializer):
    symbol = serializers.CharField(source="instrument.symbol")

    class Meta(NestedQuoteSerializer.Meta):
        fields = ("symbol", "bid", "ask", "spread", "timestamp")


class MarketQuerySerializer(serializers.Serializer[Any]):
    timeframe = serializers.ChoiceField(choices=("1m", "5m", "15m", "1h", "4h", "1d"), default="1h")
    bars = serializers.IntegerField(min_value=1, max_value=500, default=100)


class SignalsQuerySerializer(serializers.Serializer[Any]):
    status = serializers.ChoiceField(choices=("active", "closed", "all"), default="active")
    limit = serializers.IntegerField(min_value=1, max_value=500, default=50)


class NewsQuerySerializer(serializers.Serializer[Any]):
    limit = serializers.IntegerField(min_value=1, max_value=500, default=20)


class SignalSerializer(serializers.ModelSerializer[Signal]):
    user = serializers.CharField(source="user.username")
    symbol = serializers.CharField(source="instrument.symbol")
    entry = serializers.FloatField()
    stop_loss = serializers.FloatField()
    take_profit = serializers.FloatField()
    timestamp = serializers.DateTimeField(source="published_at")

    class Meta:
        model = Signal
        fields = (
            *("id", "user", "symbol", "direction", "entry", "stop_loss", "take_profit"),
            *("status", "timestamp"),
        )


class NewsSerializer(serializers.ModelSerializer[NewsItem]):
    sentiment = serializers.CharField(read_only=True)
    timestamp = serializers.DateTimeField(source="published_at")

    class Meta:
        model = NewsItem
        fields = ("title", "category", "sentiment", "sentiment_score", "timestamp")
