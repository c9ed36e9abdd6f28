"""GET /api/session: the one view that reads all apps."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

from django.http import HttpRequest
from rest_framework import serializers

from accounts.api import Answer, ApiViewSet, encode, iso_time
from accounts.streams import open_streams
from accounts.threads import in_thread
from instruments.catalogue import catalogue
from news.models_available import available
from signals_feed.models import Signal

from .uptime import started_at


class SessionSerializer(serializers.Serializer[Any]):
    instruments_active = serializers.IntegerField()
    clients_connected = serializers.IntegerField(help_text="Authenticated open sockets, over all processes.")
    signals_active = serializers.IntegerField()
    ai_models_available = serializers.ListField(child=serializers.CharField())
    server_time = serializers.DateTimeField()
    uptime_seconds = serializers.IntegerField(help_text="Of the service, not of the process that answers.")


class SessionViewSet(ApiViewSet):
    async def retrieve(self, request: HttpRequest) -> Answer:
        body = {
            "instruments_active": len(catalogue.active()),
            "clients_connected": len(await open_streams.all()),
            "signals_active": await in_thread(Signal.objects.active().count),
            "ai_models_available": available(),
            "server_time": iso_time(datetime.now(UTC)),
            "uptime_seconds": int(time.time() - await started_at()),
        }
        return Answer(encode(body))
