"""The parameters and the body of an analysis. The body only describes: it is encoded from `answer.py`."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import PolymorphicProxySerializer
from rest_framework import serializers

from core.contract.parameters import OptionalChoiceParameter, QuerySerializer
from core.contract.schema import BodySerializer
from news.labels import LABELS

from . import analysts
from .samples import SAMPLE


class DriverSerializer(serializers.Serializer[Any]):
    name: Any
    available = serializers.BooleanField(help_text="False where there are no data: then it weighs nothing.")
    weight = serializers.FloatField(min_value=0, max_value=1)
    direction = serializers.ChoiceField(choices=LABELS)
    score = serializers.FloatField(min_value=-1, max_value=1)
    contribution = serializers.FloatField(min_value=-1, max_value=1, help_text="Weight times score.")
    text = serializers.CharField(help_text="What it found, in a sentence.")


class WeighedItemSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField(help_text="As in `/api/news?expand=id`.")
    title = serializers.CharField()
    sentiment = serializers.ChoiceField(choices=LABELS)
    sentiment_score = serializers.FloatField(min_value=-1, max_value=1)
    timestamp = serializers.DateTimeField()
    relevance = serializers.ChoiceField(
        choices=("symbol", "category"), help_text="It names the instrument, or is of its category."
    )
    side = serializers.IntegerField(
        min_value=-1,
        max_value=1,
        help_text="1, or −1 where good news lower the price, as those of the yen do USDJPY.",
    )
    weight = serializers.FloatField(
        min_value=0, max_value=1, help_text="Its share in the driver's score, times its own score and `side`."
    )


class NewsEvidenceSerializer(serializers.Serializer[Any]):
    considered = serializers.IntegerField(min_value=1, help_text="Items of the last 72 hours.")
    items = WeighedItemSerializer(many=True, help_text="The weightiest, eight at most.")


class TimeframeTrendSerializer(serializers.Serializer[Any]):
    timeframe = serializers.CharField()
    weight = serializers.FloatField(min_value=0, max_value=1)
    score = serializers.FloatField(min_value=-1, max_value=1)
    spread = serializers.FloatField(help_text="EMA 20 − EMA 50, in average true ranges.")
    slope = serializers.FloatField(help_text="EMA 20 over five candles, in average true ranges.")
    position = serializers.FloatField(help_text="Price − EMA 20, in average true ranges.")


class TrendEvidenceSerializer(serializers.Serializer[Any]):
    timeframes = TimeframeTrendSerializer(many=True)


class VolatilityEvidenceSerializer(serializers.Serializer[Any]):
    timeframe = serializers.CharField()
    atr_percent = serializers.FloatField(min_value=0)
    percentile = serializers.FloatField(min_value=0, max_value=1, help_text="Among the last 240 hours.")
    confidence_factor = serializers.FloatField(min_value=0, max_value=1)


class WindowDeltaSerializer(serializers.Serializer[Any]):
    minutes = serializers.IntegerField(min_value=1)
    bid_volume = serializers.FloatField(min_value=0)
    ask_volume = serializers.FloatField(min_value=0)
    delta = serializers.FloatField(help_text="ask_volume − bid_volume")
    count = serializers.IntegerField(min_value=0, help_text="Ticks or trades in it.")


class OrderFlowEvidenceSerializer(serializers.Serializer[Any]):
    # The metaclass takes fields off the class, so this hides no attribute of Field.
    source = serializers.ChoiceField(  # type: ignore[assignment]
        choices=("trades", "tick_rule")
    )
    cumulative_delta = serializers.FloatField(allow_null=True, help_text="Since 00:00 UTC.")
    since = serializers.DateTimeField(
        help_text="Nothing was heard before, so a longer window is no whole one."
    )
    windows = WindowDeltaSerializer(many=True)


class SignalsEvidenceSerializer(serializers.Serializer[Any]):
    buys = serializers.IntegerField(min_value=0)
    sells = serializers.IntegerField(min_value=0)
    r_at_risk = serializers.FloatField(
        min_value=0, help_text="What all of them lose from here to their stops, in units of their risk."
    )


class NewsDriverSerializer(DriverSerializer):
    name = serializers.ChoiceField(choices=("news",))
    evidence = NewsEvidenceSerializer(allow_null=True)


class TrendDriverSerializer(DriverSerializer):
    name = serializers.ChoiceField(choices=("trend",))
    evidence = TrendEvidenceSerializer(allow_null=True)


class VolatilityDriverSerializer(DriverSerializer):
    name = serializers.ChoiceField(choices=("volatility",))
    evidence = VolatilityEvidenceSerializer(allow_null=True)


class OrderFlowDriverSerializer(DriverSerializer):
    name = serializers.ChoiceField(choices=("order_flow",))
    evidence = OrderFlowEvidenceSerializer(allow_null=True)


class SignalsDriverSerializer(DriverSerializer):
    name = serializers.ChoiceField(choices=("signals",))
    evidence = SignalsEvidenceSerializer(allow_null=True)


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
