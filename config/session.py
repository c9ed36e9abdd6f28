"""GET /api/session: the one view that reads all apps."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from django.http import HttpRequest
from rest_framework import serializers

from accounts.api import Answer, ApiViewSet, encode, iso_time
from accounts.schema import BodySerializer, describes
from accounts.streams import open_streams
from accounts.threads import in_thread_promptly
from instruments.catalogue import catalogue
from news.models_available import available
from signals_feed.models import Signal

from .uptime import started_at


class SessionSerializer(BodySerializer):
    examples = {
        "A quiet afternoon": {
            "instruments_active": 24,
            "clients_connected": 312,
            "signals_active": 17,
            "ai_models_available": ["lexicon-1"],
            "server_time": "2026-11-20T14:03:27.512Z",
            "uptime_seconds": 864213,
        }
    }

    instruments_active = serializers.IntegerField(min_value=0)
    clients_connected = serializers.IntegerField(
        min_value=0, help_text="Authenticated open sockets, over all processes."
    )
    signals_active = serializers.IntegerField(min_value=0)
    ai_models_available = serializers.ListField(
        child=serializers.CharField(), help_text="Identifiers of the models that answer a health check now."
    )
    server_time = serializers.DateTimeField()
    uptime_seconds = serializers.IntegerField(
        min_value=0, help_text="Of the service, not of the process that answers."
    )


class SessionViewSet(ApiViewSet):
    @describes(
        "getSession",
        SessionSerializer,
        "Statistics of the running service",
        tag="Service",
        details="How much is going on now, and which AI models can be asked.",
    )
    async def retrieve(self, request: HttpRequest) -> Answer:
        body = {
            "instruments_active": len(catalogue.active()),
            "clients_connected": await open_streams.count(),
            "signals_active": await in_thread_promptly(Signal.objects.active().count),
            "ai_models_available": available(),
            "server_time": iso_time(datetime.now(UTC)),
            "uptime_seconds": max(0, int(time.time() - await started_at())),
        }
        return Answer(encode(body))
