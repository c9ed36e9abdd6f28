"""The parameters and bodies of the market's endpoints. Bodies only describe: quotes and candles
are answered from memory, already encoded."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from accounts.exceptions import InvalidTimeframe
from accounts.parameters import BooleanParameter, ChoiceParameter, IntegerParameter, QuerySerializer

from .prices.history import KEPT
from .prices.timeframes import TIMEFRAMES


class BarsQuerySerializer(QuerySerializer):
    timeframe = ChoiceParameter(list(TIMEFRAMES), default="1h", refusal=InvalidTimeframe)
    bars = IntegerParameter(default=100, max_value=KEPT, help_text="Number of candles.")
    closed_only = BooleanParameter()


class CandleSerializer(serializers.Serializer[Any]):
    time = serializers.DateTimeField(help_text="The open of the interval, UTC.")
    open = serializers.FloatField()
    high = serializers.FloatField()
    low = serializers.FloatField()
    close = serializers.FloatField()
    volume = serializers.FloatField()


class NestedQuoteSerializer(serializers.Serializer[Any]):
    bid = serializers.FloatField()
    ask = serializers.FloatField()
    spread = serializers.FloatField(help_text="ask − bid in price units.")
    timestamp = serializers.DateTimeField(help_text="The tick's own time, UTC.")


class QuoteSerializer(NestedQuoteSerializer):
    symbol = serializers.CharField()


class MarketSerializer(serializers.Serializer[Any]):
    symbol = serializers.CharField()
    timeframe = serializers.ChoiceField(choices=list(TIMEFRAMES))
    ohlcv = CandleSerializer(many=True)
    quote = NestedQuoteSerializer()
