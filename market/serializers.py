"""The parameters and bodies of the market's endpoints. Bodies only describe: quotes and candles
are answered from memory, already encoded."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from accounts.exceptions import InvalidTimeframe
from accounts.parameters import BooleanParameter, ChoiceParameter, IntegerParameter, QuerySerializer
from accounts.schema import BodySerializer

from .prices.history import KEPT
from .prices.timeframes import TIMEFRAMES


class BarsQuerySerializer(QuerySerializer):
    timeframe = ChoiceParameter(
        list(TIMEFRAMES), default="1h", refusal=InvalidTimeframe, help_text="The interval of a candle."
    )
    bars = IntegerParameter(default=100, max_value=KEPT, help_text="Number of candles.")
    closed_only = BooleanParameter(help_text="Leave out the candle that is still forming.")


class CandleSerializer(serializers.Serializer[Any]):
    time = serializers.DateTimeField(help_text="The open of the interval.")
    open = serializers.FloatField()
    high = serializers.FloatField()
    low = serializers.FloatField()
    close = serializers.FloatField()
    volume = serializers.FloatField(min_value=0)


class NestedQuoteSerializer(serializers.Serializer[Any]):
    bid = serializers.FloatField()
    ask = serializers.FloatField()
    spread = serializers.FloatField(help_text="ask − bid, in price units.")
    timestamp = serializers.DateTimeField(help_text="The tick's own time.")


class QuoteSerializer(NestedQuoteSerializer, BodySerializer):
    examples = {
        "EURUSD": {
            "symbol": "EURUSD",
            "bid": 1.0841,
            "ask": 1.08424,
            "spread": 0.00014,
            "timestamp": "2026-11-20T14:03:27.250Z",
        }
    }

    symbol = serializers.CharField()


class MarketSerializer(BodySerializer):
    examples = {
        "Hourly candles": {
            "symbol": "EURUSD",
            "timeframe": "1h",
            "ohlcv": [
                {
                    "time": "2026-11-20T13:00:00Z",
                    "open": 1.08362,
                    "high": 1.08431,
                    "low": 1.08339,
                    "close": 1.08417,
                    "volume": 4182,
                },
                {
                    "time": "2026-11-20T14:00:00Z",
                    "open": 1.08417,
                    "high": 1.0842,
                    "low": 1.08402,
                    "close": 1.0841,
                    "volume": 263,
                },
            ],
            "quote": {
                "bid": 1.0841,
                "ask": 1.08424,
                "spread": 0.00014,
                "timestamp": "2026-11-20T14:03:27.250Z",
            },
        }
    }

    symbol = serializers.CharField()
    timeframe = serializers.ChoiceField(choices=list(TIMEFRAMES))
    ohlcv = CandleSerializer(many=True)
    quote = NestedQuoteSerializer()
