from __future__ import annotations

from typing import Any

from rest_framework import serializers


class WindowSerializer(serializers.Serializer[Any]):
    limit = serializers.IntegerField()
    remaining = serializers.IntegerField()
    reset = serializers.IntegerField(help_text="Epoch seconds when a slot frees.")


class AiCallsSerializer(serializers.Serializer[Any]):
    limit = serializers.IntegerField()
    remaining = serializers.IntegerField()
    reset = serializers.IntegerField(help_text="Epoch seconds of the next UTC midnight.")


class OpenStreamSerializer(serializers.Serializer[Any]):
    path = serializers.CharField()
    age_seconds = serializers.IntegerField()


class StreamsSerializer(serializers.Serializer[Any]):
    limit = serializers.IntegerField()
    open = OpenStreamSerializer(many=True)


class LimitsSerializer(serializers.Serializer[Any]):
    tier = serializers.CharField()
    requests = WindowSerializer()
    ai_calls = AiCallsSerializer()
    streams = StreamsSerializer()
