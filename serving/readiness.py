"""Whether requests to this process would succeed, and which shared services are away."""

import asyncio
import contextlib
import logging
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol

import msgspec
from django.conf import settings
from django.contrib.staticfiles.storage import staticfiles_storage
from django.db import DatabaseError, close_old_connections
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from redis.exceptions import RedisError

from core.background import BackgroundLoop
from core.deadlines import patient
from core.events.event_feed import feed
from core.fault_log import EachFault
from core.redis.connections import connect_shared, key_of
from core.redis.replies import is_of_full
from core.version import VERSION
from serving.draining import draining

from .findings import OK, STOPPED, Findings, Readiness

# Looks each second, apart from all requests, and tells the other processes over Redis and the database.
logger = logging.getLogger(__name__)
AWAY, READ_ONLY, FULL, UNWRITABLE, WAITS = "away", "read-only", "full", "cannot be written", "waits"

# SQLSTATE: https://www.postgresql.org/docs/current/errcodes-appendix.html
DISK_FULL, READ_ONLY_TRANSACTION = "53100", "25006"


class Reports(Protocol):
    """What the processes report to each other over the database."""

    def of_others(self, process: str) -> list[dict[str, float]]: ...
    def put(self, process: str, ages_s: dict[str, float]) -> None: ...
    def prune(self) -> None: ...


class DatabaseProbe:
    """One probe, in a thread. While it runs, it holds what it has found so far."""

    def __init__(self, reports: Reports, process: str, ages_s: dict[str, float]) -> None:
        self._reports, self._process, self._ages_s = reports, process, ages_s
        self.reading, self.writing = AWAY, AWAY
        self.others: list[dict[str, float]] = []
        """How long ago each other process found each thing in order."""

    def run(self) -> None:
        """Reading first: where only writing fails, most requests succeed."""
        try:
            self.others = self._reports.of_others(self._process)
            self.reading, self.writing = OK, WAITS
            self._reports.put(self._process, self._ages_s)
            self._reports.prune()
            self.writing = OK
        except DatabaseError as error:
            if self.reading == OK:
                self.writing = why_unwritable(error)
            else:
                logger.debug("The database does not answer: %s", error)
        finally:
            close_old_connections()


def why_unwritable(error: DatabaseError) -> str:
    cause = error.__cause__
    if isinstance(cause, sqlite3.Error):
        text = str(cause)
        return FULL if "full" in text or "I/O" in text else READ_ONLY if "readonly" in text else UNWRITABLE
    state = getattr(cause, "sqlstate", None)
    return {DISK_FULL: FULL, READ_ONLY_TRANSACTION: READ_ONLY}.get(state or "", UNWRITABLE)


LOOK_EVERY_S = 1.0

# Each probe writes to the database. While that is away, it is probed each second.
DATABASE_EVERY_S = 5.0
DATABASE_PATIENCE_S = patient(3.0)
REDIS_PATIENCE_S = patient(1.0)
REPORTS = "reports"
FORGET_AFTER_S = 60
Ages = dict[str, float]
States = Callable[[], Iterable[tuple[str, str]]]
"""Names parts of this process, each with `OK` or what is wrong with it."""


class ReadinessMonitor:
    def __init__(self) -> None:
        self.findings = Findings(settings.DEADLINES_TIMES)
        self.process = secrets.token_hex(8)
        self.is_started = False
        # The client's types name both its synchronous and its asynchronous answers.
        self._redis: Any = None
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="readiness")
        self._looking: tuple[DatabaseProbe, Future[None]] | None = None
        self._looked_at = float("-inf")
        self._logged: list[str] = []
        text = "The state of the service could not be checked"
        self._loop = BackgroundLoop(
            "readiness",
            self.look,
            fault=EachFault(logger, text),
            broke=text,
            passing=(),
            after=LOOK_EVERY_S,
        )

    async def start(self, states: States, reports: Reports) -> None:
        self._states, self._reports = states, reports
        self.findings = Findings(settings.DEADLINES_TIMES)
        self._looking, self._looked_at = None, float("-inf")
        self._redis = connect_shared()
        await self._loop.start()
        self.is_started = True

    async def stop(self) -> None:
        self.is_started = False
        await self._loop.stop()
        if self._database_is_well:
            await self._report_stop()
        if self._redis is not None:
            with contextlib.suppress(RedisError, OSError, TimeoutError):
                async with asyncio.timeout(REDIS_PATIENCE_S):
                    await self._redis.hdel(key_of(REPORTS), self.process)
            await self._redis.aclose()
            self._redis = None

    async def _report_stop(self) -> None:
        """The row tells the next process since when none was running."""
        last = DatabaseProbe(self._reports, self.process, {STOPPED: 0.0})
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DATABASE_PATIENCE_S):
                await asyncio.wrap_future(self._threads.submit(last.run))

    def verdict(self) -> Readiness:
        return self.findings.verdict(self._own_faults(), time.monotonic())

    def _own_faults(self) -> Iterator[str]:
        if draining.is_on:
            yield "stopping"
        elif not self.is_started:
            yield "starting"
        # They are read at the start: after collecting them, restart the process.
        if settings.PRODUCTION and not getattr(staticfiles_storage, "hashed_files", None):
            yield "static_files"

    async def look(self) -> None:
        self._look_here()
        self._look_at_database()
        if self._redis is not None:
            await self._look_at_redis(self._redis)
        self._log_changes()

    def _look_here(self) -> None:
        now = time.monotonic()
        for name, why in self._states():
            self.findings.note(name, why, now)
        self.findings.note("control_events", OK if feed.is_current else "unread", now)

    def _look_at_database(self) -> None:
        now = time.monotonic()
        if self._looking is not None:
            look, done = self._looking
            if done.done() or now - self._looked_at > DATABASE_PATIENCE_S:
                self._note_database(look, now)
            if done.done():
                self._looking = None
        if self._looking is None and (
            now - self._looked_at >= DATABASE_EVERY_S or not self._database_is_well
        ):
            self._looked_at = now
            look = DatabaseProbe(self._reports, self.process, self.findings.ages_s(now))
            self._looking = look, self._threads.submit(look.run)

    @property
    def _database_is_well(self) -> bool:
        checks = self.findings.verdict((), 0.0).checks
        return checks.get("database", OK) == checks.get("database_writes", OK) == OK

    def _note_database(self, look: DatabaseProbe, now: float) -> None:
        self.findings.note("database", look.reading, now)
        self.findings.note("database_writes", look.writing, now)
        for ages_s in look.others:
            self.findings.hear(ages_s, now)

    async def _look_at_redis(self, redis: Any) -> None:
        now = time.monotonic()
        try:
            async with asyncio.timeout(REDIS_PATIENCE_S):
                others = await self._exchange_over_redis(redis, now)
        except (RedisError, OSError, TimeoutError) as error:
            self.findings.note("redis", FULL if is_of_full(error) else AWAY, now)
            return
        self.findings.note("redis", OK, now)
        for ages_s in others:
            self.findings.hear(ages_s, now)

    async def _exchange_over_redis(self, redis: Any, now: float) -> list[Ages]:
        """Reports have the time of Redis, so that the clocks of the machines do not matter."""
        seconds, microseconds = await redis.time()
        at = seconds + microseconds / 1_000_000
        report = msgspec.json.encode((at, self.findings.ages_s(now)))
        async with redis.pipeline(transaction=False) as asked:
            asked.hset(key_of(REPORTS), self.process, report)
            asked.expire(key_of(REPORTS), FORGET_AFTER_S)
            asked.hgetall(key_of(REPORTS))
            answers: list[Any] = await asked.execute()
        others: dict[bytes, bytes] = answers[2]
        others.pop(self.process.encode(), None)
        reports, gone = [], []
        for process, data in others.items():
            reported_at, ages_s = msgspec.json.decode(data, type=tuple[float, Ages])
            if at - reported_at > FORGET_AFTER_S:
                gone.append(process)
            else:
                reports.append({name: age_s + at - reported_at for name, age_s in ages_s.items()})
        if gone:
            await redis.hdel(key_of(REPORTS), *gone)
        return reports

    def _log_changes(self) -> None:
        found = self.verdict()
        wrong = [f"{name} {found.checks[name]}" for name in found.degraded]
        wrong += [f"{name} for this process alone" for name in found.reasons if name in found.checks]
        if wrong != self._logged:
            self._logged = wrong
            if wrong:
                logger.warning("Not in order: %s", ", ".join(wrong))
            else:
                logger.info("Everything is in order again")


monitor = ReadinessMonitor()


# How readiness is published: by /livez and /readyz, from memory and under any host name, and in the metrics.
LIVEZ, READYZ = "/livez", "/readyz"

# The older name of /livez.
HEALTHZ = "/healthz"
PATHS = frozenset((LIVEZ, READYZ, HEALTHZ))


async def answer_probe(scope: dict[str, Any], send: Any) -> None:
    if scope["method"] not in ("GET", "HEAD"):
        status, body = 405, {"status": "GET and HEAD only"}
    elif scope["path"] != READYZ:
        status, body = 200, {"status": "ok"}
    else:
        status, body = readiness()
    encoded = msgspec.json.encode(body)
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(encoded))]
    headers.append((b"cache-control", b"no-store"))
    if status == 405:
        headers.append((b"allow", b"GET, HEAD"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else encoded})


def readiness() -> tuple[int, dict[str, Any]]:
    """200 while requests here would succeed."""
    found = monitor.verdict()
    body: dict[str, Any] = {"status": "not ready" if found.reasons else "ready"}
    if found.reasons:
        body["reasons"] = found.reasons
    return (503 if found.reasons else 200), body | {"degraded": found.degraded, "checks": found.checks}


class ReadinessMetrics(Collector):
    def describe(self) -> list[Metric]:
        """Registering it probes nothing."""
        return []

    def collect(self) -> Iterator[Metric]:
        found = monitor.verdict()
        version = GaugeMetricFamily(
            "tickwire_version", "1, with the version of the program that runs.", labels=("version",)
        )
        version.add_metric((VERSION,), 1)
        yield version
        ready = GaugeMetricFamily("tickwire_ready", "1 while requests to this process would succeed.")
        ready.add_metric((), not found.reasons)
        yield ready
        text = "1 while it is away for all processes, as far as this one knows."
        degraded = GaugeMetricFamily("tickwire_degraded", text, labels=("what", "why"))
        alone = GaugeMetricFamily(
            "tickwire_cut_off", "1 while it is away for this process alone.", labels=("what",)
        )
        for name, why in found.checks.items():
            degraded.add_metric((name, why), name in found.degraded)
            alone.add_metric((name,), name in found.reasons)
        yield degraded
        yield alone
