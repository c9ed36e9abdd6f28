"""GET /api/session, which reads all apps; and since when the service is up."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from datetime import UTC, datetime

from django.conf import settings
from django.http import HttpRequest
from redis.asyncio import Redis
from redis.exceptions import RedisError
from rest_framework import serializers

from accounts.open_streams.registry import open_streams
from accounts.viewset import KeyedViewSet
from analysis.analysts import available_models
from core.background import cancel_and_wait
from core.contract.answers import Answer, iso_time
from core.contract.schema import BodySerializer, describes
from core.plain_json import encode
from core.threads import in_thread_promptly
from instruments.catalogue import catalogue
from signals_feed.models import Signal


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


class SessionViewSet(KeyedViewSet):
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
            "ai_models_available": available_models(),
            "server_time": iso_time(datetime.now(UTC)),
            "uptime_seconds": max(0, int(time.time() - await started_at())),
        }
        return Answer(encode(body))


logger = logging.getLogger(__name__)
KEY = "tickwire:up-since"

# While any process lives it renews the key; a service that was down longer than this starts anew.
KEPT_S = 30
RENEW_S = 5
_since = time.time()
_redis: Redis | None = None
_task: asyncio.Task[None] | None = None


async def start_uptime() -> None:
    global _since, _redis, _task
    _since = time.time()
    if settings.REDIS_URL:
        _redis = Redis.from_url(settings.REDIS_URL, socket_timeout=0.5, socket_connect_timeout=0.5)
        _task = asyncio.create_task(_renew(), name="uptime")


async def stop_uptime() -> None:
    global _redis, _task
    await cancel_and_wait(_task)
    if _redis is not None:
        await _redis.aclose()
    _redis = _task = None


async def started_at() -> float:
    if _redis is not None:
        with contextlib.suppress(RedisError, OSError):
            shared = await _redis.get(KEY)
            return min(_since, float(shared)) if shared else _since
    return _since


async def _renew() -> None:
    while _redis is not None:
        try:
            await _redis.set(KEY, str(_since), ex=KEPT_S, nx=True)
            await _redis.expire(KEY, KEPT_S)
        except (RedisError, OSError) as error:
            logger.info("Could not share since when the service is up: %s", error)
        await asyncio.sleep(RENEW_S)
