from __future__ import annotations

from typing import Any

from rest_framework import serializers

from .schema import BodySerializer


class WindowSerializer(serializers.Serializer[Any]):
    limit = serializers.IntegerField(min_value=0)
    remaining = serializers.IntegerField(min_value=0)
    reset = serializers.IntegerField(help_text="Epoch seconds when a slot frees.")


class AiCallsSerializer(serializers.Serializer[Any]):
    limit = serializers.IntegerField(min_value=0)
    remaining = serializers.IntegerField(min_value=0)
    reset = serializers.IntegerField(help_text="Epoch seconds of the next UTC midnight.")


class OpenStreamSerializer(serializers.Serializer[Any]):
    path = serializers.CharField()
    age_seconds = serializers.IntegerField(min_value=0)


class StreamsSerializer(serializers.Serializer[Any]):
    limit = serializers.IntegerField(min_value=0)
    open = OpenStreamSerializer(many=True)


class LimitsSerializer(BodySerializer):
    examples = {
        "A Pro account with one stream": {
            "tier": "pro",
            "requests": {"limit": 120, "remaining": 57, "reset": 1795262412},
            "ai_calls": {"limit": 20, "remaining": 18, "reset": 1795305600},
            "streams": {"limit": 5, "open": [{"path": "/ws/market", "age_seconds": 3641}]},
        }
    }

    tier = serializers.CharField(help_text="As staff named it: free, pro, premium.")
    requests = WindowSerializer()
    ai_calls = AiCallsSerializer()
    streams = StreamsSerializer()


CODES = (
    "missing_api_key",
    "invalid_api_key",
    "https_required",
    "symbol_not_found",
    "not_found",
    "method_not_allowed",
    "invalid_parameter",
    "invalid_timeframe",
    "parameter_out_of_range",
    "rate_limit_exceeded",
    "ai_quota_exceeded",
    "model_unavailable",
    "quote_unavailable",
    "overloaded",
    "internal_error",
)


class RefusalSerializer(serializers.Serializer[Any]):
    code = serializers.ChoiceField(choices=CODES, help_text="Stable: what a program should look at.")
    message = serializers.CharField(help_text="For people; may change.")
    status = serializers.IntegerField(min_value=400, max_value=599, help_text="The HTTP status once more.")
    field = serializers.CharField(required=False, help_text="The parameter that was refused.")
    allowed = serializers.ListField(
        child=serializers.CharField(), required=False, help_text="The words it may be."
    )
    max = serializers.IntegerField(required=False, help_text="The largest number it may be.")
    request_id = serializers.CharField(help_text="The header X-Request-Id once more.")


class ErrorSerializer(BodySerializer):
    """Whatever goes wrong, the body has this shape."""

    error = RefusalSerializer()
