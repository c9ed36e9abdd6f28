"""Looks each second, apart from all requests, and tells the other processes over Redis and the database."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import msgspec
from django.conf import settings
from django.contrib.staticfiles.storage import staticfiles_storage
from redis.asyncio import Redis
from redis.exceptions import RedisError

from accounts.events import feed
from accounts.tasks import end
from config.draining import draining
from market import services as market
from market.overview import GONE_MS

from . import database
from .verdict import OK, Picture, Verdict

logger = logging.getLogger(__name__)

LOOK_EVERY_S = 1.0
# The database is written at each look at it. While it is away it is looked at each second.
DATABASE_EVERY_S = 5.0
DATABASE_PATIENCE_S = 3.0
REDIS_PATIENCE_S = 1.0
REPORTS = "tickwire:reports"
FORGET_AFTER_S = 60
Ages = dict[str, float]


class Monitor:
    def __init__(self) -> None:
        self.picture = Picture()
        self.process = secrets.token_hex(8)
        self.is_started = False
        # Of what the client answers, its types say two things at once.
        self._redis: Any = None
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="readiness")
        self._looking: tuple[database.Look, Future[None]] | None = None
        self._looked_at = float("-inf")
        self._told: list[str] = []
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self.picture, self._looking, self._looked_at = Picture(), None, float("-inf")
        if settings.REDIS_URL:
            self._redis = Redis.from_url(settings.REDIS_URL)
        self._task = asyncio.create_task(self._watch(), name="readiness")
        self.is_started = True

    async def stop(self) -> None:
        self.is_started = False
        await end(self._task)
        if self._redis is not None:
            with contextlib.suppress(RedisError, OSError, TimeoutError):
                async with asyncio.timeout(REDIS_PATIENCE_S):
                    await self._redis.hdel(REPORTS, self.process)
            await self._redis.aclose()
            self._redis = None

    def verdict(self) -> Verdict:
        return self.picture.verdict(self._own_faults(), time.monotonic())

    def _own_faults(self) -> Iterator[str]:
        if not self.is_started:
            yield "stopping" if draining.is_on else "starting"
        elif draining.is_on:
            yield "stopping"
        # Read when the process starts: who collects them later has to start it again.
        if settings.PRODUCTION and not getattr(staticfiles_storage, "hashed_files", None):
            yield "static_files"

    async def _watch(self) -> None:
        while True:
            try:
                await self.look()
            except Exception:  # noqa: BLE001 - the top of the task: what broke is logged and tried again
                logger.exception("Could not look what is in order")
            await asyncio.sleep(LOOK_EVERY_S)

    async def look(self) -> None:
        self._look_here()
        self._look_at_database()
        if self._redis is not None:
            await self._look_at_redis(self._redis)
        self._tell()

    def _look_here(self) -> None:
        now = time.monotonic()
        age_ms = market.now_ms() - market.status().at_ms
        self.picture.note("engine", OK if age_ms <= GONE_MS else "silent", now)
        if not settings.REDIS_URL:
            self.picture.note("journal", "incomplete" if market.status().has_hole else OK, now)
        self.picture.note("control_events", OK if feed.is_current else "unread", now)

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
            look = database.Look(self.process, self.picture.ages_s(now))
            self._looking = look, self._threads.submit(look.run)

    @property
    def _database_is_well(self) -> bool:
        checks = self.picture.verdict((), 0.0).checks
        return checks.get("database", OK) == checks.get("database_writes", OK) == OK

    def _note_database(self, look: database.Look, now: float) -> None:
        self.picture.note("database", look.reading, now)
        self.picture.note("database_writes", look.writing, now)
        for ages_s in look.others:
            self.picture.hear(ages_s, now)

    async def _look_at_redis(self, redis: Any) -> None:
        now = time.monotonic()
        try:
            async with asyncio.timeout(REDIS_PATIENCE_S):
                told = await self._tell_redis(redis, now)
        except (RedisError, OSError, TimeoutError) as error:
            self.picture.note("redis", "full" if "OOM" in str(error) else "away", now)
            return
        self.picture.note("redis", OK, now)
        for ages_s in told:
            self.picture.hear(ages_s, now)

    async def _tell_redis(self, redis: Any, now: float) -> list[Ages]:
        """Each report has the time of Redis, so that nobody's own clock matters."""
        seconds, microseconds = await redis.time()
        at = seconds + microseconds / 1_000_000
        report = msgspec.json.encode((at, self.picture.ages_s(now)))
        async with redis.pipeline(transaction=False) as asked:
            asked.hset(REPORTS, self.process, report)
            asked.expire(REPORTS, FORGET_AFTER_S)
            asked.hgetall(REPORTS)
            answers: list[Any] = await asked.execute()
        others: dict[bytes, bytes] = answers[2]
        others.pop(self.process.encode(), None)
        told, gone = [], []
        for process, data in others.items():
            told_at, ages_s = msgspec.json.decode(data, type=tuple[float, Ages])
            if at - told_at > FORGET_AFTER_S:
                gone.append(process)
            else:
                told.append({name: age_s + at - told_at for name, age_s in ages_s.items()})
        if gone:
            await redis.hdel(REPORTS, *gone)
        return told

    def _tell(self) -> None:
        found = self.verdict()
        wrong = [f"{name} {found.checks[name]}" for name in found.degraded]
        wrong += [f"{name} for this process alone" for name in found.reasons if name in found.checks]
        if wrong != self._told:
            self._told = wrong
            if wrong:
                logger.warning("Not in order: %s", ", ".join(wrong))
            else:
                logger.info("Everything is in order again")


monitor = Monitor()
