from __future__ import annotations

from typing import Any

from rest_framework import serializers

from core.contract.parameters import QuerySerializer, WordListParameter
from core.contract.schema import BodySerializer

from .models import Instrument

EXPANSIONS = ("digits", "hours", "state", "order_flow_source", "volume_kind")


class SymbolsQuerySerializer(QuerySerializer):
    expand = WordListParameter(EXPANSIONS, help_text="More fields for each instrument, separated by commas.")


class InstrumentSerializer(serializers.Serializer[Any]):
    symbol = serializers.CharField(help_text="Instrument code.")
    name = serializers.CharField()
    type = serializers.ChoiceField(choices=Instrument.Type.values)
    pip_size = serializers.FloatField()
    contract_size = serializers.FloatField()
    margin_rate = serializers.FloatField(help_text="A share: 0.05 is 5 %.")
    min_lot = serializers.FloatField()
    max_lot = serializers.FloatField()


class HoursSerializer(serializers.Serializer[Any]):
    timezone = serializers.CharField(help_text="Of all times in it, as in America/New_York.")
    sessions = serializers.CharField(help_text="24/7, or Mon-Fri 09:30-16:00.")
    holidays = serializers.ListField(
        child=serializers.CharField(), help_text="2026-12-25, or 2026-11-27@13:00 for an early close."
    )


class ExpandedInstrumentSerializer(InstrumentSerializer):
    """An instrument, with what `expand` asked for."""

    class Meta:
        ref_name = "Instrument"

    digits = serializers.IntegerField(
        required=False, min_value=0, help_text="Decimals of a price. Only on request."
    )
    hours = HoursSerializer(required=False)
    state = serializers.ChoiceField(
        choices=("open", "closed", "stale"), required=False, help_text="Of the market now. Only on request."
    )
    order_flow_source = serializers.ChoiceField(
        choices=Instrument.OrderFlowSource.values,
        required=False,
        help_text="Whether order flow is measured from trades or estimated. Only on request.",
    )
    volume_kind = serializers.ChoiceField(
        choices=Instrument.VolumeKind.values, required=False, help_text="What volume counts. Only on request."
    )


class InstrumentListSerializer(BodySerializer):
    examples = {
        "Two instruments": {
            "items": [
                {
                    "symbol": "EURUSD",
                    "name": "Euro / US Dollar",
                    "type": "forex",
                    "pip_size": 0.0001,
                    "contract_size": 100000,
                    "margin_rate": 0.0333,
                    "min_lot": 0.01,
                    "max_lot": 100,
                },
                {
                    "symbol": "XAUUSD",
                    "name": "Gold / US Dollar",
                    "type": "commodity",
                    "pip_size": 0.01,
                    "contract_size": 100,
                    "margin_rate": 0.05,
                    "min_lot": 0.01,
                    "max_lot": 100,
                },
            ],
            "count": 2,
        }
    }

    items = ExpandedInstrumentSerializer(many=True)
    count = serializers.IntegerField(min_value=0, help_text="Instruments in this answer.")
