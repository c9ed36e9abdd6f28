from __future__ import annotations

from typing import Any

from rest_framework import serializers

from accounts.schema import BodySerializer

from . import samples
from .models import Signal


class RecordSerializer(serializers.Serializer[Any]):
    signals = serializers.IntegerField(min_value=0, help_text="Closed ones; all of them count.")
    win_rate = serializers.FloatField(
        allow_null=True,
        help_text="Share of signals with a `pnl_r` above 0; null before the first has closed.",
    )
    expectancy_r = serializers.FloatField(allow_null=True, help_text="Mean of `pnl_r`.")
    total_r = serializers.FloatField(help_text="Sum of `pnl_r`.")


class SymbolRecordSerializer(RecordSerializer):
    symbol = serializers.CharField()


class ClosedBySerializer(serializers.Serializer[Any]):
    """How many signals ended in each way."""

    def get_fields(self) -> dict[str, Any]:
        return {reason: serializers.IntegerField(min_value=0) for reason in Signal.CloseReason.values}


class EquityPointSerializer(serializers.Serializer[Any]):
    signals = serializers.IntegerField(min_value=1, help_text="After so many closed signals.")
    time = serializers.DateTimeField(help_text="When the last of them closed.")
    r = serializers.FloatField(help_text="Sum of `pnl_r` up to here.")
    low_r = serializers.FloatField(help_text="Lowest sum since the point before.")
    high_r = serializers.FloatField(help_text="Highest sum since the point before.")


class PublisherSerializer(RecordSerializer, BodySerializer):
    examples = {"A publisher with too few signals": samples.PUBLISHER}

    user = serializers.CharField()
    active = serializers.IntegerField(min_value=0, help_text="Signals that are still open.")
    too_few = serializers.BooleanField(help_text="Fewer than 30 closed signals: the numbers say little yet.")
    best_excursion_r = serializers.FloatField(
        allow_null=True, help_text="The most that any signal was ahead while it was open."
    )
    worst_excursion_r = serializers.FloatField(
        allow_null=True, help_text="The most that any signal was behind while it was open; negative."
    )
    max_drawdown_r = serializers.FloatField(
        min_value=0,
        help_text="Deepest fall of the sum of `pnl_r` below its highest point, which is 0 at first.",
    )
    max_drawdown_signals = serializers.IntegerField(
        min_value=0, help_text="Most signals in a row after which the sum was below its highest point."
    )
    closed_by = ClosedBySerializer(help_text="How many signals ended in each way.")
    by_symbol = SymbolRecordSerializer(many=True)
    equity = EquityPointSerializer(
        many=True,
        help_text="In the order of closing, oldest first. At most 400 points: of a longer history, "
        "neighbours share one.",
    )
