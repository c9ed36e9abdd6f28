"""What `run_engine` says of itself on a port of its own: probes, and figures while it leads or stands by."""

import asyncio
from collections.abc import Iterator
from typing import Any, Literal, cast

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import DatabaseError, close_old_connections, connection
from prometheus_client import (
    GC_COLLECTOR,
    PLATFORM_COLLECTOR,
    PROCESS_COLLECTOR,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from redis.asyncio import Redis

from core import clock
from core.database import UNANSWERED
from core.deadlines import patient
from core.events.event_feed import EVENT_METRICS
from core.redis.connections import AWAY as REDIS_AWAY
from core.redis.connections import connect_redis, key_of
from core.redis.replies import is_of_full
from market.metrics import MarketMetrics, engine_registry
from market.overview import GONE_MS
from market.runtime import bus_url, market
from serving.findings import OK
from serving.metrics.port import MetricsPort
from serving.readiness import AWAY, READ_ONLY

Role = Literal["starting", "standby", "leader", "stopping"]

# Kubernetes gives up a probe after a second unless it is told otherwise.
ASKED_WITHIN_S = patient(0.8)
PROBE, PROBE_MS = "bus:probe", 1_000


class EngineHealth(Collector):
    """One for the process: its role is set by the command."""

    def __init__(self) -> None:
        self.role: Role = "starting"
        self._redis: Redis | None = None
        self._market = MarketMetrics()
        self.registry = engine_registry
        for collector in (PROCESS_COLLECTOR, PLATFORM_COLLECTOR, GC_COLLECTOR, *EVENT_METRICS, self):
            self.registry.register(collector)
        self.port = MetricsPort(sync_to_async(self._text, thread_sensitive=False), self.readiness)

    async def start(self) -> None:
        self._redis = connect_redis(bus_url())
        await self.port.start(settings.ENGINE_PORT, settings.METRICS_HOST)

    async def stop(self) -> None:
        await self.port.stop()
        if self._redis is not None:
            await self._redis.aclose()
            self._redis = None

    def become(self, role: Role) -> None:
        """Nothing follows on stopping, whatever was under way."""
        if self.role != "stopping":
            self.role = role

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        text = "1 while this engine holds the lease and makes prices, 0 while it stands by."
        yield GaugeMetricFamily("tickwire_engine_leads", text, value=self.role == "leader")
        if self.role == "leader":
            # A standby hears no prices: to it all of them would be stale.
            yield from self._market.collect()

    def _text(self) -> bytes:
        return generate_latest(self.registry)

    async def readiness(self) -> tuple[int, dict[str, Any]]:
        """A leader is ready while it makes prices, a standby while it could take over."""
        database, redis = await asyncio.gather(self._look_at_database(), self._look_at_redis())
        checks = {"database": database, "redis": redis}
        if self.role == "leader":
            age_ms = clock.now_ms() - market.status.at_ms
            checks["engine"] = OK if age_ms <= GONE_MS else "silent"
            checks["bus"] = market.status.bus_fault or OK
        reasons: list[str] = [self.role] if self.role in ("starting", "stopping") else []
        reasons += [name for name, found in checks.items() if found != OK]
        body: dict[str, Any] = {"status": "not ready" if reasons else "ready", "role": self.role}
        if reasons:
            body["reasons"] = reasons
        return (503 if reasons else 200), body | {"checks": checks}

    async def _look_at_database(self) -> str:
        try:
            async with asyncio.timeout(ASKED_WITHIN_S):
                is_read_only = await sync_to_async(ask_database, thread_sensitive=False)()
        except (*UNANSWERED, TimeoutError):
            return AWAY
        return READ_ONLY if is_read_only else OK

    async def _look_at_redis(self) -> str:
        if self._redis is None:
            return AWAY
        try:
            async with asyncio.timeout(ASKED_WITHIN_S):
                # Its types name the answer of the synchronous client, too. One that is full answers a ping.
                await cast(Any, self._redis).set(key_of(PROBE), "", px=PROBE_MS)
        except (*REDIS_AWAY, TimeoutError) as error:
            return "full" if is_of_full(error) else AWAY
        return OK


def ask_database() -> bool:
    """Whether it takes no writes, as a standby."""
    setting = "current_setting('transaction_read_only')" if connection.vendor == "postgresql" else "'off'"
    try:
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {setting}")  # noqa: S608 - names of our own
            (is_read_only,) = cursor.fetchone()
        return bool(is_read_only == "on")
    except DatabaseError:
        connection.close()
        raise
    finally:
        close_old_connections()


engine_health = EngineHealth()
