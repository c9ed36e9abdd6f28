from __future__ import annotations

from typing import Any

from drf_spectacular.utils import PolymorphicProxySerializer
from rest_framework import serializers

from accounts.parameters import ChoiceParameter, IntegerParameter, QuerySerializer, TextParameter
from accounts.schema import BodySerializer, OneOf

from . import samples
from .models import Signal


class SignalsQuerySerializer(QuerySerializer):
    status = ChoiceParameter(
        ("active", "closed", "all"), default="active", help_text="Which signals; `all` is both kinds."
    )
    limit = IntegerParameter(default=50, max_value=500, help_text="Maximum number of signals.")


class FilterSerializer(QuerySerializer):
    """Read first: what is unknown is told before any other bad parameter."""

    symbol = TextParameter(help_text="Only signals for this instrument; upper or lower case.")
    user = TextParameter(help_text="Only signals of this publisher; the name as the feed writes it.")


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


KINDS: dict[str, Any] = {
    "active": ActiveSignalSerializer,
    "closed": ClosedSignalSerializer,
}
ONE_SIGNAL = OneOf(
    PolymorphicProxySerializer("Signal", KINDS, "status"),
    {"An active signal": samples.ACTIVE, "A closed signal": samples.CLOSED},
)


class SignalListSerializer(BodySerializer):
    examples = {
        "One active signal": {"items": [samples.ACTIVE], "count": 1},
        "Both kinds": {"items": [samples.ACTIVE, samples.CLOSED], "count": 2},
    }

    items = PolymorphicProxySerializer(
        component_name="Signal", serializers=KINDS, resource_type_field_name="status", many=True
    )
    count = serializers.IntegerField(min_value=0, help_text="Signals in this answer.")
