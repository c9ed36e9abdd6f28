"""The parameters and the body of an analysis. The body only describes: it is encoded from `answer.py`."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import PolymorphicProxySerializer
from rest_framework import serializers

from accounts.parameters import OptionalChoiceParameter, QuerySerializer
from accounts.schema import BodySerializer
from news.labels import LABELS

from . import analysts
from .driver_serializers import (
    NewsDriverSerializer,
    OrderFlowDriverSerializer,
    SignalsDriverSerializer,
    TrendDriverSerializer,
    VolatilityDriverSerializer,
)
from .samples import SAMPLE


class AnalysisQuerySerializer(QuerySerializer):
    model = OptionalChoiceParameter(
        analysts.identifiers, help_text="Who should answer; without it the best that does."
    )


class LevelSerializer(serializers.Serializer[Any]):
    price = serializers.FloatField()
    touches = serializers.IntegerField(min_value=1, help_text="How often the price turned there.")


class BandsSerializer(serializers.Serializer[Any]):
    upper_2 = serializers.FloatField()
    upper_1 = serializers.FloatField(help_text="The price and one average hourly range.")
    lower_1 = serializers.FloatField()
    lower_2 = serializers.FloatField()


class DayRangeSerializer(serializers.Serializer[Any]):
    date = serializers.DateField(help_text="The UTC day.")
    high = serializers.FloatField()
    low = serializers.FloatField()


class LevelsSerializer(serializers.Serializer[Any]):
    supports = LevelSerializer(many=True, help_text="Below the price, the nearest first; three at most.")
    resistances = LevelSerializer(many=True, help_text="Above the price, the nearest first; three at most.")
    atr_bands = BandsSerializer(allow_null=True)
    day = DayRangeSerializer(allow_null=True)


class AsOfSerializer(serializers.Serializer[Any]):
    quote = serializers.DateTimeField(allow_null=True)
    candles = serializers.DateTimeField(allow_null=True, help_text="The end of the last closed candle.")
    order_flow = serializers.DateTimeField(allow_null=True)
    news = serializers.DateTimeField(allow_null=True)
    signals = serializers.DateTimeField(allow_null=True)


class AnalysisSerializer(BodySerializer):
    examples = {"EURUSD in an afternoon": SAMPLE}

    symbol = serializers.CharField()
    model = serializers.CharField(help_text="Who answered.")
    generated_at = serializers.DateTimeField(help_text="When its inputs were read.")
    market_state = serializers.ChoiceField(choices=("open", "closed", "stale"))
    price = serializers.FloatField(allow_null=True, help_text="The mid then.")
    direction = serializers.ChoiceField(choices=LABELS, help_text="Bullish from 0.15, bearish to −0.15.")
    score = serializers.FloatField(
        min_value=-1, max_value=1, help_text="Of our own model the sum of the drivers' contributions."
    )
    confidence = serializers.FloatField(min_value=0, max_value=1)
    summary = serializers.CharField()
    weights_sum = serializers.FloatField(
        min_value=0, max_value=1, help_text="Of the drivers that had data; a missing one counts as neutral."
    )
    drivers = PolymorphicProxySerializer(
        component_name="Driver",
        serializers={
            "trend": TrendDriverSerializer,
            "news": NewsDriverSerializer,
            "signals": SignalsDriverSerializer,
            "order_flow": OrderFlowDriverSerializer,
            "volatility": VolatilityDriverSerializer,
        },
        resource_type_field_name="name",
        many=True,
    )
    levels = LevelsSerializer()
    as_of = AsOfSerializer(help_text="How recent each input was; null where there was none.")
    cached = serializers.BooleanField(
        help_text="Made by an earlier request or another one's, so it cost no AI call."
    )
