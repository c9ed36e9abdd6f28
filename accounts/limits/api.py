"""GET /api/limits: what the account has left, free of charge."""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime
from typing import Any

from django.http import HttpRequest
from rest_framework import serializers

from accounts.keys.caller import Allowances, Caller
from accounts.open_streams.registry import open_streams
from accounts.viewset import KeyedViewSet
from core.background import SharedLookups
from core.contract.answers import Answer
from core.contract.schema import BodySerializer, describes
from core.plain_json import encode
from core.threads import in_thread_promptly

from .ai_calls import look_at_ai_calls
from .throttle import throttle


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


# Nobody waits for a window here, so nothing else keeps an account from asking on all its connections.
_looks: SharedLookups[tuple[int, Allowances], bytes] = SharedLookups()


class LimitsViewSet(KeyedViewSet):
    is_free = True

    @describes(
        "getLimits",
        LimitsSerializer,
        "What is left of your limits",
        tag="Service",
        details="The request window, the AI calls of the day and the open streams of your account. "
        "Free of charge: it answers even when the window is used up.",
    )
    async def retrieve(self, request: HttpRequest) -> Answer:
        caller = self.caller
        return Answer(await _looks.ask((caller.account_id, caller.allowances), lambda: look(caller)))


async def look(caller: Caller) -> bytes:
    allowed = caller.allowances
    standing = await throttle.look(caller)
    now = datetime.now(UTC)
    ai = await in_thread_promptly(look_at_ai_calls, caller.account_id, allowed.ai_calls, now)
    body: dict[str, Any] = {
        "tier": allowed.tier,
        "requests": {
            "limit": standing.limit,
            "remaining": standing.remaining,
            "reset": math.ceil(time.time() + standing.frees_in),
        },
        "ai_calls": {"limit": ai.limit, "remaining": ai.remaining, "reset": ai.reset},
        "streams": {
            "limit": allowed.streams,
            "open": [
                {"path": stream.path, "age_seconds": int(time.time() - stream.opened_at)}
                for stream in await open_streams.of(caller.account_id)
            ],
        },
    }
    return encode(body)
