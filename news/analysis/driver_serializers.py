"""What the drivers of an analysis look like on the wire."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from news.labels import LABELS


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
