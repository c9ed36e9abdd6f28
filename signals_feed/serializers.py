from __future__ import annotations

from typing import Any

from rest_framework import serializers

from accounts.parameters import ChoiceParameter, IntegerParameter, QuerySerializer, TextParameter

from .models import Signal


class SignalsQuerySerializer(QuerySerializer):
    status = ChoiceParameter(("active", "closed", "all"), default="active")
    limit = IntegerParameter(default=50, max_value=500, help_text="Maximum number of signals.")


class SymbolFilterSerializer(QuerySerializer):
    """Read first: an unknown symbol is told before any other bad parameter."""

    symbol = TextParameter(help_text="Instrument code.")


class SignalSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    user = serializers.CharField(help_text="Publisher.")
    symbol = serializers.CharField()
    direction = serializers.ChoiceField(choices=Signal.Direction.values)
    entry = serializers.FloatField()
    stop_loss = serializers.FloatField()
    take_profit = serializers.FloatField()
    status = serializers.ChoiceField(choices=Signal.Status.values)
    timestamp = serializers.DateTimeField()


class ClosedSignalSerializer(SignalSerializer):
    pnl = serializers.FloatField(help_text="Signed pips.")
    pnl_percent = serializers.FloatField()
    pnl_r = serializers.FloatField(help_text="In units of the risk taken.")
    close_price = serializers.FloatField()
    closed_at = serializers.DateTimeField()
    close_reason = serializers.ChoiceField(choices=Signal.CloseReason.values)
