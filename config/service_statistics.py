"""Statistics of the running service from several apps (GET /api/session), and how long it has been up."""

import contextlib
import logging
import time
from datetime import UTC, datetime
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta
from redis.asyncio import Redis
from redis.exceptions import RedisError
from rest_framework.decorators import action
from rest_framework.request import Request

from accounts.open_streams.registry import open_streams
from analysis.analysts import available_models
from core.background import BackgroundLoop
from core.contract.answers import Answer
from core.contract.parameters import describes
from core.deadlines import patient
from core.fault_log import LastingFault
from core.redis.connections import connect_shared, key_of
from core.struct_schemas import Moment
from core.threads import in_thread_promptly
from core.times import iso_time
from core.viewset import ApiViewSet
from instruments.catalogue import catalogue
from signals_feed.models import Signal

Count = Annotated[int, Meta(ge=0)]


class ServiceStatistics(msgspec.Struct):
    component: ClassVar[str] = "Session"

    instruments_active: Annotated[Count, Meta(description="Instruments on offer.")]
    clients_connected: Annotated[Count, Meta(description="Authenticated open sockets, over all processes.")]
    signals_active: Annotated[Count, Meta(description="Signals that are still open.")]
    ai_models_available: Annotated[
        list[str],
        Meta(
            description="The models that pass a health check now: those that score news and those that write "
            "analyses. `GET /api/analysis/{symbol}` lists the latter under its parameter `model`."
        ),
    ]
    server_time: Annotated[Moment, Meta(description="The current time of the server.")]
    uptime_seconds: Annotated[
        Count,
        Meta(
            description="How long the service has been running, whichever of its processes sends "
            "the response."
        ),
    ]


QUIET = ServiceStatistics(
    instruments_active=24,
    clients_connected=312,
    signals_active=17,
    ai_models_available=["tickwire-analyst-1", "tickwire-linear-1"],
    server_time="2026-11-20T14:03:27.512Z",
    uptime_seconds=864213,
)


class StatisticsViewSet(ApiViewSet):
    @action(detail=False)  # type: ignore[type-var]
    @describes(
        "getSession",
        ServiceStatistics,
        "Statistics of the running service",
        tag="Service",
        examples={"A quiet afternoon": QUIET},
        details="How busy the service is, and which AI models are available.",
    )
    async def session(self, request: Request) -> Answer:
        body = ServiceStatistics(
            instruments_active=len(catalogue.offered()),
            clients_connected=await open_streams.count(),
            signals_active=await in_thread_promptly(Signal.objects.active().count),
            ai_models_available=available_models(),
            server_time=iso_time(datetime.now(UTC)),
            uptime_seconds=max(0, int(time.time() - await uptime.began_at())),
        )
        return Answer(body)


logger = logging.getLogger(__name__)
UP_SINCE = "up-since"

# Each process renews the key while it lives. A service that was down for longer counts from zero.
KEPT_S = 30
WITHIN_S = patient(0.5)
RENEW_S = 5
AWAY = (RedisError, OSError)


class Uptime:
    """Since when the service has always had a process; without Redis, since when this one has been up."""

    def __init__(self) -> None:
        self._since = time.time()
        self._redis: Redis | None = None
        self._renewal = BackgroundLoop(
            "uptime",
            self._renew,
            fault=LastingFault(logger, "Could not share since when the service is up", logging.INFO),
            broke="Since when the service is up could not be shared",
            passing=AWAY,
            after=RENEW_S,
        )

    async def start(self) -> None:
        self._since = time.time()
        self._redis = connect_shared(socket_timeout=WITHIN_S, socket_connect_timeout=WITHIN_S)
        if self._redis is not None:
            await self._renewal.start()

    async def stop(self) -> None:
        await self._renewal.stop()
        if self._redis is not None:
            await self._redis.aclose()
            self._redis = None

    async def began_at(self) -> float:
        if self._redis is not None:
            with contextlib.suppress(*AWAY):
                shared = await self._redis.get(key_of(UP_SINCE))
                return min(self._since, float(shared)) if shared else self._since
        return self._since

    async def _renew(self) -> None:
        if self._redis is not None:
            await self._redis.set(key_of(UP_SINCE), str(self._since), ex=KEPT_S, nx=True)
            await self._redis.expire(key_of(UP_SINCE), KEPT_S)


uptime = Uptime()
