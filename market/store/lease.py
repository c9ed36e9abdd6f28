"""The writer's lease: one process at a time holds it, and a write by any other is refused. Processes have
names, and one that was killed is known by its."""

import logging
import os
import socket
import time
import uuid
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError
from django.db import Error, connection, transaction
from django.db.models import F

from core import clock
from core.database import database, fetch
from core.times import moment
from core.version import known_rules
from market.models import EngineState
from market.prices.records import JournalPosition


# The name by which a process signs what it writes, so that others can tell whether it still lives.
def own_name() -> str:
    """Another one each time."""
    return name_of(os.getpid())


def name_of(pid: int) -> str:
    mark = f"{_namespace()}.{uuid.uuid4().hex[:8]}.{_started(pid)}"
    return f"{socket.gethostname()}:{pid}:{mark}.{known_rules.newest}"


def rules_of(name: str) -> int:
    """Names that an earlier version gave do not tell."""
    *_, rules = (*name.rpartition(":")[2].split("."), "", "", "")[:4]
    return int(rules or 1)


def place_of(name: str) -> str:
    """As an operator looks for it."""
    host, pid, _ = name.rsplit(":", 2)
    return f"process {pid} on {host}"


def is_alive(name: str) -> bool | None:
    """A process of this machine that has ended needs no waiting for; None if that cannot be determined
    here."""
    if not name:
        return None
    host, pid, mark = name.rsplit(":", 2)
    # A name that an earlier version gave does not tell when the process was started.
    namespace, _, started = (*mark.split("."), "", "")[:3]
    # Containers may share a host's name, and each has process IDs of its own.
    if host != socket.gethostname() or not namespace or namespace != _namespace() or int(pid) == os.getpid():
        return None
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    # Another process may have got its number since.
    return "" in (started, found := _started(int(pid))) or started == found


def _namespace() -> str:
    """The scope in which process IDs mean the same as here; empty if unknown."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
        return f"{boot}-{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return ""


def _started(pid: int) -> str:
    """In ticks of the kernel since the machine was started; empty if unknown."""
    try:
        # The name of the program, in parentheses, may hold anything.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


TABLE = EngineState._meta.db_table

# A writer without a beat for this long, as the waiting process sees it, is gone.
GONE_S = 4.0

# A process that looks less often cannot tell whether the database answered in between, so it assumes a beat.
STEADY_S, BEAT_S = 2.0, 1.0

# A writer that has been silent for this long is gone, even if its silence was not observed. Not on a database
# that is shared: the database itself may have been away, which a process that has just started does not know.
LONG_GONE = timedelta(seconds=60)
SILENT = timedelta(seconds=15)


class LeaseLost(Exception):
    """Another process holds the lease, so what was about to be written must not be."""


class Lease:
    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self.writer = own_name()
        self.is_held = False
        """As far as is known here; callers set it."""
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
            state.writer, state.beats, state.beat_at = self.writer, state.beats + 1, database().now()
            state.clock_at = moment(clock.now_ms())
            state.save()
        self._seen, self.beat_s = None, self._monotonic()
        return JournalPosition(state.epoch, state.position)

    def other(self) -> str:
        """The name of another process that holds it; empty if it may be taken. Only looks."""
        seen = EngineState.objects.only("writer", "beats", "beat_at").filter(pk=1).first()
        is_free = seen is None or seen.writer == self.writer or self._is_free(seen)
        return "" if seen is None or is_free else seen.writer

    def beat(self, position: JournalPosition) -> None:
        """Within the transaction that writes: nothing of it is kept if the lease is another's."""
        if not self.beat_alone(epoch=position.epoch, position=position.number):
            raise LeaseLost

    def beat_alone(self, **position: Any) -> bool:
        """False if the lease is another's. A flush of our own may hold the row: this waits for it."""
        held = EngineState.objects.filter(pk=1, writer=self.writer)
        at = {"beat_at": database().written_now(), "clock_at": moment(clock.now_ms())}
        is_ours = bool(held.update(beats=F("beats") + 1, **at, **position))
        self.beat_s = self._monotonic() if is_ours else 0.0
        return is_ours

    def hold(self) -> None:
        """Within a transaction: raises LeaseLost unless it is ours, and keeps it so until the end."""
        if not self.is_held:
            raise LeaseLost
        # The weakest lock that makes another process wait to take the lease; our own beats pass.
        lock = database().key_share
        if not fetch(f"SELECT 1 FROM {TABLE} WHERE id = 1 AND writer = %s {lock}", [self.writer]):  # noqa: S608 - names of our own
            raise LeaseLost

    def leave(self) -> None:
        """A clean end: no successor has to wait."""
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
            if not is_first_look or lives or database().is_shared:
                # The clock may have been set since the last beat of one that lives on this machine.
                return False
            return state.beat_at is not None and database().now() - state.beat_at > LONG_GONE
        self._silent_s += gap_s if gap_s <= STEADY_S else BEAT_S
        return self._silent_s > GONE_S


def has_writer() -> bool:
    """Whether some process holds it and has not been silent for longer than a busy database explains."""
    state = EngineState.objects.filter(pk=1).exclude(writer="").first()
    if state is None or state.beat_at is None or is_alive(state.writer) is False:
        return False
    return database().now() - state.beat_at <= SILENT


def rules_of_writer() -> int:
    """The newest rules of signals that it knows. Without one, the next may be of the version before."""
    writer = EngineState.objects.filter(pk=1).values_list("writer", flat=True).first()
    return rules_of("" if not writer or is_alive(writer) is False else writer)


def clock_of_writer_s() -> float | None:
    """How far it is ahead of the database's. None if no writer reports it: a version that does not know the
    present rules leaves the value of another one."""
    state = EngineState.objects.filter(pk=1).first()
    if state is None or state.clock_at is None or state.beat_at is None:
        return None
    is_told = rules_of(state.writer) >= known_rules.newest
    return (state.clock_at - state.beat_at).total_seconds() if is_told else None


# Without Redis one process serves a database: two would each acknowledge ticks that the other lacks.
logger = logging.getLogger(__name__)

# Each takes a beat's time: more than it takes to tell that a process on another machine is gone.
LOOKS = 10


def wait_until_alone() -> None:
    """Before anything is changed; the lease itself is taken later."""
    # An empty database has not even that table.
    if TABLE in connection.introspection.table_names() and (lease := Lease()).other():
        wait_for_end(lease)


def wait_for_end(lease: Lease) -> None:
    """Of the process that holds it: it may be stopping, or gone. Raises CommandError if it keeps running."""
    where = ""
    for _ in range(LOOKS):
        time.sleep(BEAT_S)
        if not (writer := lease.other()):
            return
        if not where:
            where = place_of(writer)
            logger.warning("Another service runs on this data (%s): waiting for its end", where)
    raise CommandError(
        f"Another service runs on this data ({where}). Two would not know of each other's ticks and limits:"
        " stop it, give this one a folder (--data) or DATABASE_URL of its own, or set REDIS_URL for both."
    )
