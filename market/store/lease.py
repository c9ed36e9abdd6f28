"""The writer's lease: one process at a time holds it, and a write by any other is refused."""

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.db import Error, connection, transaction
from django.db.models import F
from django.db.models.functions import Now
from django.utils import timezone

from core import clock
from core.times import moment
from market.models import EngineState
from market.prices.records import JournalPosition

from . import process_names
from .process_names import is_alive, own_name, rules_of

TABLE = EngineState._meta.db_table

# A writer without a beat for this long, as the waiting process sees it, is gone.
GONE_S = 4.0

# A process that looks less often cannot tell whether the database answered in between, so it assumes a beat.
STEADY_S, BEAT_S = 2.0, 1.0

# A writer that has been silent for this long is gone, even if nobody watched it. Not on a database that is
# shared: the database itself may have been away, which a process that has just started does not know.
LONG_GONE = timedelta(seconds=60)
SILENT = timedelta(seconds=15)


class LeaseLost(Exception):
    """Another process holds the lease, so what was about to be written must not be."""


class Lease:
    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self.writer = own_name()
        self.is_held = False
        """As far as is known here; set by whoever asks for it."""
        self.beat_s = 0.0
        """When it was written last that this process lives."""
        self.written = JournalPosition("", 0)
        """Up to where the other had written when it was looked at last."""
        self._seen: int | None = None
        """The last beat of the other."""
        self._looked_s = self._silent_s = 0.0
        """When the database was looked at last, and for how long it had answered without another beat."""

    def take(self) -> JournalPosition | None:
        """Where the last writer stopped, once the lease is ours. To be asked again until then."""
        try:
            return self._take()
        except Error:
            # The writer could not beat either.
            self._silent_s = 0.0
            raise

    def _take(self) -> JournalPosition | None:
        seen, _ = EngineState.objects.get_or_create(pk=1)
        self.written = JournalPosition(seen.epoch, seen.position)
        if seen.writer == self.writer and self.beat_alone():
            return self.written
        # Without a lock: a waiting process asks every second, and may vanish while it holds one.
        if seen.writer != self.writer and not self._is_free(seen):
            return None
        with transaction.atomic():
            unchanged = EngineState.objects.filter(pk=1, writer=seen.writer, beats=seen.beats)
            # Skipped while it is locked, even by a process that is gone and that the database believes alive.
            state = unchanged.select_for_update(skip_locked=True).first()
            if state is None:
                return None
            state.writer, state.beats, state.beat_at = self.writer, state.beats + 1, database_now()
            state.clock_at = moment(clock.now_ms())
            state.save()
        self._seen, self.beat_s = None, self._monotonic()
        return JournalPosition(state.epoch, state.position)

    def other(self) -> str:
        """The name of another process that holds it; empty where it may be taken. Only looks."""
        seen = EngineState.objects.only("writer", "beats", "beat_at").filter(pk=1).first()
        is_free = seen is None or seen.writer == self.writer or self._is_free(seen)
        return "" if seen is None or is_free else seen.writer

    def beat(self, position: JournalPosition) -> None:
        """Within the transaction that writes: nothing of it stays if the lease is another's."""
        if not self.beat_alone(epoch=position.epoch, position=position.number):
            raise LeaseLost

    def beat_alone(self, **position: Any) -> bool:
        """False if the lease is another's. A flush of our own may hold the row: this waits for it."""
        held = EngineState.objects.filter(pk=1, writer=self.writer)
        now = Now() if connection.vendor == "postgresql" else timezone.now()
        clock_at = moment(clock.now_ms())
        is_ours = bool(held.update(beats=F("beats") + 1, beat_at=now, clock_at=clock_at, **position))
        self.beat_s = self._monotonic() if is_ours else 0.0
        return is_ours

    def hold(self) -> None:
        """Within a transaction: raises LeaseLost unless it is ours, and keeps it so until the end."""
        if not self.is_held:
            raise LeaseLost
        with connection.cursor() as cursor:
            # The weakest lock that makes another process wait to take the lease; our own beats pass.
            # SQLite has one writer.
            lock = "FOR KEY SHARE" if connection.vendor == "postgresql" else ""
            cursor.execute(f"SELECT 1 FROM {TABLE} WHERE id = 1 AND writer = %s {lock}", [self.writer])  # noqa: S608 - names of our own
            if cursor.fetchone() is None:
                raise LeaseLost

    def leave(self) -> None:
        """A clean end: nobody has to wait."""
        EngineState.objects.filter(pk=1, writer=self.writer).update(writer="")

    def _is_free(self, state: EngineState) -> bool:
        lives = is_alive(state.writer)
        if not state.writer or lives is False:
            return True
        # By our own clock, and only while the database answers: after an outage the writer gets its time.
        now_s = self._monotonic()
        gap_s, self._looked_s = now_s - self._looked_s, now_s
        if self._seen != state.beats:
            is_first_look, self._seen, self._silent_s = self._seen is None, state.beats, 0.0
            if not is_first_look or lives or connection.vendor == "postgresql":
                # The clock may have been set since the last beat of one that lives on this machine.
                return False
            return state.beat_at is not None and database_now() - state.beat_at > LONG_GONE
        self._silent_s += gap_s if gap_s <= STEADY_S else BEAT_S
        return self._silent_s > GONE_S


def has_writer() -> bool:
    """Whether some process holds it and has not been silent for longer than a busy database explains."""
    state = EngineState.objects.filter(pk=1).exclude(writer="").first()
    if state is None or state.beat_at is None or is_alive(state.writer) is False:
        return False
    return database_now() - state.beat_at <= SILENT


def rules_of_writer() -> int:
    """The newest rules of signals that it knows. Without one, the next may be of the version before."""
    writer = EngineState.objects.filter(pk=1).values_list("writer", flat=True).first()
    return rules_of("" if not writer or is_alive(writer) is False else writer)


def clock_of_writer_s() -> float | None:
    """How far it is ahead of the database's. None where no writer tells: a version that does not know the
    present rules leaves what another one told."""
    state = EngineState.objects.filter(pk=1).first()
    if state is None or state.clock_at is None or state.beat_at is None:
        return None
    is_told = rules_of(state.writer) >= process_names.known_rules
    return (state.clock_at - state.beat_at).total_seconds() if is_told else None


def database_now() -> datetime:
    """Of the one clock that all machines have in common."""
    if connection.vendor != "postgresql":
        return timezone.now()
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement_timestamp()")
        (now,) = cursor.fetchone()
    return now  # type: ignore[no-any-return]
