from __future__ import annotations

from typing import Any

from drf_spectacular.utils import PolymorphicProxySerializer
from rest_framework import serializers

from accounts.parameters import ChoiceParameter, IntegerParameter, QuerySerializer, TextParameter
from accounts.schema import BodySerializer

from .models import Signal


class SignalsQuerySerializer(QuerySerializer):
    status = ChoiceParameter(
        ("active", "closed", "all"), default="active", help_text="Which signals; `all` is both kinds."
    )
    limit = IntegerParameter(default=50, max_value=500, help_text="Maximum number of signals.")


class SymbolFilterSerializer(QuerySerializer):
    """Read first: an unknown symbol is told before any other bad parameter."""

    symbol = TextParameter(help_text="Only signals for this instrument; upper or lower case.")


class SignalSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    user = serializers.CharField(help_text="Publisher.")
    symbol = serializers.CharField()
    direction = serializers.ChoiceField(choices=Signal.Direction.values)
    entry = serializers.FloatField()
    stop_loss = serializers.FloatField()
    take_profit = serializers.FloatField()
    status = serializers.ChoiceField(choices=Signal.Status.values)
    timestamp = serializers.DateTimeField(help_text="When it was published.")


class ActiveSignalSerializer(SignalSerializer):
    status = serializers.ChoiceField(choices=[Signal.Status.ACTIVE.value])


class ClosedSignalSerializer(SignalSerializer):
    status = serializers.ChoiceField(choices=[Signal.Status.CLOSED.value])
    pnl = serializers.FloatField(help_text="Signed pips, computed by the service from its own ticks.")
    pnl_percent = serializers.FloatField(help_text="Of the price paid.")
    pnl_r = serializers.FloatField(help_text="In units of the risk taken.")
    close_price = serializers.FloatField()
    closed_at = serializers.DateTimeField()
    close_reason = serializers.ChoiceField(choices=Signal.CloseReason.values)


class SignalListSerializer(BodySerializer):
    active = {
        "id": "6f1c2f5e-8f0b-4a53-9d0e-2b8f6f6f9a01",
        "user": "marta",
        "symbol": "EURUSD",
        "direction": "buy",
        "entry": 1.0842,
        "stop_loss": 1.081,
        "take_profit": 1.09,
        "status": "active",
        "timestamp": "2026-11-20T09:12:44.118Z",
    }
    closed = {
        "id": "0b7d1a9c-3a5e-4c86-8a43-5f0f5f3f1d77",
        "user": "kenji",
        "symbol": "XAUUSD",
        "direction": "sell",
        "entry": 2651.4,
        "stop_loss": 2660.4,
        "take_profit": 2633.4,
        "status": "closed",
        "timestamp": "2026-11-19T15:40:02.730Z",
        "pnl": 1800.0,
        "pnl_percent": 0.6789,
        "pnl_r": 2.0,
        "close_price": 2633.4,
        "closed_at": "2026-11-20T08:31:17.004Z",
        "close_reason": "take_profit",
    }
    examples = {
        "One active signal": {"items": [active], "count": 1},
        "Both kinds": {"items": [active, closed], "count": 2},
    }

    items = PolymorphicProxySerializer(
        component_name="Signal",
        serializers={"active": ActiveSignalSerializer, "closed": ClosedSignalSerializer},
        resource_type_field_name="status",
        many=True,
    )
    count = serializers.IntegerField(min_value=0, help_text="Signals in this answer.")
