"""Control events as they are published: a row in the transaction of the fact, and after its commit a message
to the readers of all processes."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache, partial
from typing import Any

import msgspec
from django.conf import settings
from django.db import connection, models, transaction
from django.db.models import Q
from django.utils import timezone
from redis import Redis as RedisOfThreads
from redis.asyncio import Redis
from redis.exceptions import RedisError

from core.background import BackgroundLoop
from core.database import database
from core.deadlines import patient
from core.fault_log import LastingFault
from core.redis.connections import connect_redis, connect_redis_of_threads, key_of
from core.redis.urls import read_redis_address

from .kinds import ENDS_ACCESS, EventKind

logger = logging.getLogger(__name__)
not_heard = LastingFault(logger, "No control events over Redis, trying again")

COMMIT_ORDER_LOCK = 7_424_001

# Revoking a key must not wait for a Redis that accepts connections and never answers.
REDIS_WITHIN_S = patient(0.5)
PING_EVERY_S = 1.0
SILENT_S = patient(3.0)
RETRY_S = 1.0


class ControlEventManager(models.Manager["ControlEvent"]):
    def publish(self, kind: EventKind, *, by: str = "", **facts: Any) -> ControlEvent:
        """Write an event in the transaction of its fact, as the last act of that transaction."""
        self.take_turn()
        event = self.create(kind=kind, by=by, facts=facts, account_id=facts.get("account"))
        self._tell_after_commit(event)
        return event

    def publish_each(
        self, kind: EventKind, each: Iterable[dict[str, Any]], *, by: str = ""
    ) -> list[ControlEvent]:
        """The same for many facts at once, whose events stand in their order."""
        self.take_turn()
        events = self.bulk_create(
            ControlEvent(kind=kind, by=by, facts=facts, account_id=facts.get("account")) for facts in each
        )
        for event in events:
            self._tell_after_commit(event)
        return events

    def take_turn(self) -> None:
        """Facts without an event, as the ledger's, stand in commit order as well."""
        if not connection.in_atomic_block:
            raise transaction.TransactionManagementError("A control event is published inside a transaction.")
        # A sequence numbers rows as they are written, not as they commit. Writers take turns until they
        # commit, so a reader never passes a position that is still to appear. A transaction that locks rows
        # after this can deadlock with a writer that has them and waits here.
        database().lock(COMMIT_ORDER_LOCK)

    def _tell_after_commit(self, event: ControlEvent) -> None:
        if not any(entry[1] is nudge for entry in connection.run_on_commit):
            transaction.on_commit(nudge)
        if event.kind in ENDS_ACCESS:
            transaction.on_commit(partial(send_to_processes, event.message))

    def is_lost(self, position: int) -> bool:
        """Whether the database was restored to a state before it."""
        restored = self.filter(kind=EventKind.DATABASE_RESTORED, position__gt=position)
        return restored.filter(facts__after__lt=position).exists()

    def newest(self) -> ControlEvent | None:
        return self.order_by("position").last()


class ControlEvent(models.Model):
    """One row of the outbox, read by position in every process."""

    position = models.BigAutoField(primary_key=True)
    kind = models.CharField(max_length=40)
    facts = models.JSONField(default=dict)
    # No foreign key: what happened outlives the account.
    account_id = models.BigIntegerField(null=True, editable=False)
    by = models.CharField(max_length=150, blank=True, help_text="Who did it.")
    created_at = models.DateTimeField(default=timezone.now, db_index=True)

    objects = ControlEventManager()

    class Meta:
        app_label = "accounts"
        ordering = ("-position",)
        indexes = (
            models.Index(
                name="events_of_account",
                fields=("account_id", "-position"),
                condition=Q(account_id__isnull=False),
            ),
        )

    def __str__(self) -> str:
        return f"{self.position} {self.kind}"

    @property
    def message(self) -> EventMessage:
        return EventMessage(self.position, self.kind, self.facts)

    def is_same_as(self, other: ControlEvent) -> bool:
        """Whether this is the same event, and not another one at its position."""
        return (self.position, self.kind, self.created_at) == (other.position, other.kind, other.created_at)


class EventMessage(msgspec.Struct):
    """An event, or without a kind only a reason to read the outbox."""

    position: int = 0
    kind: str = ""
    facts: dict[str, Any] = {}


readers: set[Callable[[], None]] = set()
"""Each makes a reader in this process read now. Called from any thread."""


def nudge() -> None:
    """Makes every reader in this process read now, after a commit. Each wakes those of other processes."""
    for look_now in tuple(readers):
        look_now()
    # Processes of version 0.1 do not use the channel layer. This goes with the next release.
    send_to_processes(EventMessage())


def send_to_processes(event: EventMessage) -> None:
    """Over Redis, which is faster than polling and works while the database is away. Called from any thread,
    after the commit. Processes that miss it read the event from the database."""
    if not (url := settings.REDIS_URL):
        return
    try:
        _redis(url).publish(channel_of(url), msgspec.json.encode(event))
    except (RedisError, OSError) as error:
        logger.info("Could not tell the other processes: %s", error)


@cache
def _redis(url: str) -> RedisOfThreads:
    return connect_redis_of_threads(url, socket_timeout=REDIS_WITHIN_S, socket_connect_timeout=REDIS_WITHIN_S)


def channel_of(url: str) -> str:
    """Redis does not keep the channels of its databases apart, so installations that share a server need a
    name for each database."""
    return key_of(f"control-events:{read_redis_address(url).database}")


class ChannelListener:
    """Receives the events of other processes over Redis, until `listen` is cancelled."""

    def __init__(self, hear: Callable[[EventMessage], None]) -> None:
        self._hear = hear
        self._answered_at = float("-inf")

    @property
    def is_connected(self) -> bool:
        return time.monotonic() - self._answered_at < SILENT_S

    async def listen(self, url: str) -> None:
        await BackgroundLoop(
            "control events over Redis",
            partial(self._connect, url),
            fault=not_heard,
            broke="Control events over Redis could not be heard, trying again",
            passing=(RedisError, OSError),
            after=RETRY_S,
        ).run()

    async def _connect(self, url: str) -> None:
        redis = connect_redis(url, socket_connect_timeout=REDIS_WITHIN_S)
        try:
            await self._listen(redis, channel_of(url))
        finally:
            self._answered_at = float("-inf")
            with suppress(RedisError, OSError):
                await redis.aclose()

    async def _listen(self, redis: Redis, name: str) -> None:
        async with redis.pubsub() as channel:
            await channel.subscribe(name)
            self._answered_at = time.monotonic()
            not_heard.over()
            # Events published before this are read from the database.
            self._hear(EventMessage())
            while True:
                message = await channel.get_message(timeout=PING_EVERY_S)
                if message is not None:
                    self._take(message)
                elif time.monotonic() - self._answered_at > SILENT_S:
                    raise TimeoutError("Redis does not answer")
                else:
                    await channel.ping()

    def _take(self, message: dict[str, Any]) -> None:
        self._answered_at = time.monotonic()
        if message["type"] == "message":
            try:
                self._hear(msgspec.json.decode(message["data"], type=EventMessage))
            except msgspec.DecodeError as error:
                logger.warning("A control event that this version does not know was passed over: %s", error)
                self._hear(EventMessage())
