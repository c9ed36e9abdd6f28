"""Runs the engine alone, with a port of its own for probes and metrics, but not on a database whose
migrations are behind the code."""

import asyncio
import contextlib
import logging
import signal
from collections.abc import Iterator
from typing import Any, Literal, cast

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
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

from core import clock, process
from core.background import cancel_and_wait, first_done
from core.database import UNANSWERED, database
from core.deadlines import patient
from core.events.event_feed import EVENT_METRICS
from core.events.event_feed import feed as control_events
from core.fault_log import LastingFault
from core.process import (
    end_on_hangup,
    end_within,
    feed_watchdog,
    log_uncaught,
    pending_migrations,
    refuse_unfinished,
    tell_ready,
    wait_for_database,
)
from core.program import command
from core.redis.connections import AWAY as REDIS_AWAY
from core.redis.connections import connect_redis, key_of
from core.redis.replies import is_of_full
from instruments.catalogue import catalogue
from market.engine.push_queue import PushQueue
from market.metrics import MarketMetrics, engine_registry
from market.overview import GONE_MS
from market.runtime import bus_url, market
from market.store.lease import LeaseLost
from serving.findings import OK
from serving.metrics.port import MetricsPort
from serving.readiness import AWAY, READ_ONLY

Role = Literal["starting", "standby", "leader", "stopping"]

# By default, Kubernetes gives up a probe after a second.
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
        of_database, of_redis = await asyncio.gather(self._look_at_database(), self._look_at_redis())
        checks = {"database": of_database, "redis": of_redis}
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
    try:
        return database().takes_no_writes()
    except DatabaseError:
        connection.close()
        raise
    finally:
        close_old_connections()


engine_health = EngineHealth()


logger = logging.getLogger(__name__)
# With thousands of instruments a start holds up the loop. The standby leads long before.
WATCHDOG_S = 120.0
start_waits = LastingFault(logger, "The engine cannot start, trying again")


class Command(BaseCommand):
    help = (
        "Run the market engine beside the web processes: feeds, candles, order flow. Start a second one as "
        "a standby; it takes over within seconds when the first ends."
    )
    requires_system_checks = "__all__"

    def handle(self, **options: Any) -> None:
        if not bus_url():
            raise CommandError(
                "The web processes hear of the market over Redis: set REDIS_URL. "
                f"Without it `{command('serve')}` runs the engine itself."
            )
        log_uncaught()
        wait_for_database("The engine")
        refuse_unfinished()
        refuse_pending_migrations()
        asyncio.run(self.run())

    async def run(self) -> None:
        ending = asyncio.Event()
        loop = asyncio.get_running_loop()

        def stop() -> None:
            end_within(settings.STOP_WITHIN_S)
            engine_health.become("stopping")
            ending.set()

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop)
        end_on_hangup()
        await control_events.start()
        await catalogue.load()
        await engine_health.start()
        # Whether it leads or stands by.
        tell_ready()
        watchdog = loop.create_task(feed_watchdog(WATCHDOG_S), name="watchdog")
        try:
            while not ending.is_set():
                await self.take_a_turn(ending)
        finally:
            await engine_health.stop()
            await control_events.stop()
            await cancel_and_wait(watchdog)
        self.say("Stopped.")

    async def take_a_turn(self, ending: asyncio.Event) -> None:
        """Wait for the lease, then run until another process has it or this one is to end."""
        runner = market.separate_engine()
        self.say("Waiting for the lease: another engine may hold it.")
        engine_health.become("standby")
        await first_done(runner.stand_by(), ending.wait())
        if ending.is_set():
            await runner.stop()
            return
        engine_health.become("starting")
        try:
            # This may wait for Redis.
            await first_done(runner.start(), ending.wait(), runner.writer.lease_lost.wait())
        except (*UNANSWERED, LeaseLost) as error:
            # The database went away meanwhile. The lease expires, and the process that gets it starts from
            # the database.
            start_waits.tell(error)
        if not runner.is_running:
            runner.writer.lose_lease()
            await runner.stop()
            return
        start_waits.over()
        engine_health.become("leader")
        process.freeze_startup_objects()
        push_queue = PushQueue(bus_url())
        # Ticks are acknowledged once a kill of this process would not lose them.
        serving = asyncio.create_task(push_queue.serve(runner.push, runner.bus.settle), name="market inbox")
        self.say(f"The engine runs: {len(catalogue.active())} instruments.")
        try:
            # A push that waits to be acknowledged may be the first to learn of another engine.
            with contextlib.suppress(LeaseLost):
                await first_done(runner.writer.lease_lost.wait(), ending.wait(), serving)
        finally:
            # Another engine may lead while this one hangs up.
            engine_health.become("standby")
            await runner.stop()
            await push_queue.stop()

    def say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()


def refuse_pending_migrations() -> None:
    if pending := pending_migrations():
        first, others = pending[0], len(pending) - 1
        more = f" and {others} more" if others else ""
        raise CommandError(
            f"The database is behind the code: {first.app_label}.{first.name}{more} is pending. "
            f"Run `{command('migrate')}` first."
        )
