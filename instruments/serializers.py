from __future__ import annotations

from typing import Any

from rest_framework import serializers

from accounts.parameters import QuerySerializer, WordListParameter

from .models import Instrument

EXPANSIONS = ("digits", "hours", "state", "order_flow_source", "volume_kind")


class SymbolsQuerySerializer(QuerySerializer):
    expand = WordListParameter(EXPANSIONS, help_text="More fields for each instrument.")


class InstrumentSerializer(serializers.Serializer[Any]):
    symbol = serializers.CharField()
    name = serializers.CharField()
    type = serializers.ChoiceField(choices=Instrument.Type.values)
    pip_size = serializers.FloatField()
    contract_size = serializers.FloatField()
    margin_rate = serializers.FloatField()
    min_lot = serializers.FloatField()
    max_lot = serializers.FloatField()


class InstrumentListSerializer(serializers.Serializer[Any]):
    items = InstrumentSerializer(many=True)
    count = serializers.IntegerField()
