"""The life of a process: it waits for a database that is still starting, hides the objects of the start from
the garbage collector, reports to systemd, logs uncaught exceptions, and stops within a deadline even if the
database hangs."""

import asyncio
import gc
import logging
import os
import signal
import socket
import sqlite3
import sys
import threading
import time
from contextlib import suppress
from functools import cache
from types import FrameType, TracebackType

import psycopg
from django.conf import settings
from django.core.management.base import CommandError
from django.db import OperationalError, connection
from django.db.migrations import Migration
from django.db.migrations.executor import MigrationExecutor

from core.program import command

# The last is ten times the default: with 2,000 open sockets, a full collection stops the process for 0.15 s.
# Ended sockets do not need it: tests/contract/streams/test_nothing_left.py.
THRESHOLDS = (700, 10, 100)


def freeze_startup_objects() -> None:
    """They are no garbage, and each collection that visits them stops the process for a tenth of a second."""
    if gc.get_threshold() != THRESHOLDS:
        gc.collect()
        gc.freeze()
        gc.set_threshold(*THRESHOLDS)


logger = logging.getLogger(__name__)
RETRY_S, LOG_EVERY_S = 1.0, 30.0

# Errors of a database that is not there yet. Any other, such as a wrong password, will not pass by waiting.
PASSES = (
    "refused",
    "timeout",
    "timed out",
    "starting up",
    "shutting down",
    "recovery",
    "accepting connections",
    "too many",
    "closed the connection",
    "unreachable",
    "No such file",
    "reset by peer",
    "Temporary failure",
    "remaining connection slots",
    # Two servers, and neither is the one that may be written to yet.
    "is read-only",
    "hot standby mode",
)


def connect_once() -> None:
    """Bypasses the pool, which reports only a timeout. Raises psycopg.Error. Does nothing on SQLite."""
    if connection.vendor != "postgresql":
        return
    wishes = {name: wish for name, wish in connection.get_connection_params().items() if name != "pool"}
    psycopg.connect(**wishes).close()


def first_line(error: psycopg.Error) -> str:
    return str(error).strip().splitlines()[0].rstrip(".")


def wait_for_database(who: str, *, whatever_it_says: bool = False, within_s: float = float("inf")) -> None:
    """Bypasses the pool, whose attempts come further and further apart. A lasting refusal is raised."""
    until, logged_at = time.monotonic() + within_s, float("-inf")
    while True:
        try:
            connect_once()
        except psycopg.OperationalError as error:
            reason = first_line(error)
            passes = whatever_it_says or any(words in str(error) for words in PASSES)
            if not passes or time.monotonic() >= until:
                raise OperationalError(reason) from error
            if time.monotonic() - logged_at > LOG_EVERY_S:
                logged_at = time.monotonic()
                logger.warning("%s waits for the database: %s", who, reason)
            time.sleep(RETRY_S)
        else:
            return


# The messages of SQLite for a damaged file.
DAMAGE = ("malformed", "not a database", "unsupported file format")


def is_damaged(error: BaseException) -> bool:
    """Whether the SQLite file is damaged; waiting does not help."""
    cause = error.__cause__
    return isinstance(cause, sqlite3.DatabaseError) and any(words in str(cause) for words in DAMAGE)


def restore_in_its_place() -> str:
    """What to do about a damaged file. The secret in its folder stays, so keys and factors remain valid."""
    return (
        "Stop whatever uses it, move it away with its -wal and -shm, and restore a backup in its place:"
        f" `{command('restore FILE')}`"
    )


# Faults of a database that answers but refuses the work.
TAKES_NO_WRITES = "The database takes no writes: it is a standby, or was made read-only."
NAME_THE_PRIMARY = (
    "Name the primary in DATABASE_URL; with several hosts add ?target_session_attrs=read-write."
)
LET_IT_OWN = (
    "Let it own the database and each of its tables:"
    " `ALTER DATABASE … OWNER TO …`, `ALTER TABLE … OWNER TO …`."
)

UNFINISHED = "tickwire_unfinished"
"""A table that exists while the database is being filled with another's rows."""


def is_unfinished() -> bool:
    return UNFINISHED in connection.introspection.table_names()


def refuse_unfinished() -> None:
    """A killed copy leaves a part of the rows, which must not be taken for the whole."""
    if is_unfinished():
        raise CommandError(
            "The database is incomplete: a `restore` or `move` into it has not finished. Run that "
            "command again."
        )


def pending_migrations() -> list[Migration]:
    """Those that the database lacks, in the order in which they would run."""
    executor = MigrationExecutor(connection)
    return [migration for migration, _ in executor.migration_plan(executor.loader.graph.leaf_nodes())]


def end_on_hangup() -> None:
    """A closing terminal sends it, and a process without workers has nothing to replace. nohup is
    respected."""

    def end(number: int, frame: FrameType | None) -> None:
        logger.warning("SIGHUP: this process ends as on SIGTERM")
        os.kill(os.getpid(), signal.SIGTERM)

    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        signal.signal(signal.SIGHUP, end)


_watching: threading.Thread | None = None


def end_within(seconds: float) -> None:
    """After that the process ends whatever it still waits for. A second call does not move the deadline."""
    global _watching
    if _watching is None:
        # Python joins the threads that still wait for the database, so giving up waiting is not enough.
        _watching = threading.Timer(seconds, _end, (seconds,))
        _watching.daemon = True
        _watching.start()


def _end(seconds: float) -> None:
    logger.error(
        "Stopping took longer than %g s, as when the database stands still: ended as by kill -9. "
        "What was acknowledged stays; the last uses of keys may be missing.",
        seconds,
    )
    os._exit(1)


# Reports to systemd, if it started this process with Type=notify, that the service is ready and alive:
# several times within the time of a watchdog, so that one late report costs nothing.
SIGNS = 4


def tell_ready() -> None:
    """Called again, it changes nothing."""
    _tell(b"READY=1")


async def feed_watchdog(within_s: float) -> None:
    """Until cancelled: a process whose loop stands still for so long is killed by systemd. This is asked for
    here, because a WatchdogSec of the unit would also kill an earlier release, which feeds none."""
    _tell(b"WATCHDOG_USEC=%d" % (within_s * 1_000_000))
    while settings.NOTIFY_SOCKET:
        # Without waiting for a systemd that does not read.
        _tell(b"WATCHDOG=1", socket.MSG_DONTWAIT)
        await asyncio.sleep(within_s / SIGNS)


def _tell(what: bytes, flags: int = 0) -> None:
    path = settings.NOTIFY_SOCKET
    if not path:
        return
    # A name that begins with @ is an abstract socket: the kernel expects a zero byte instead.
    address = f"\0{path[1:]}" if path.startswith("@") else path
    with suppress(OSError):
        _socket().sendto(what, flags, address)


@cache
def _socket() -> socket.socket:
    """Kept, because a process without a free descriptor must report too."""
    return socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)


# Uncaught exceptions become log lines without secrets; Python would print them as they are.
def log_uncaught() -> None:
    """For processes that serve. At a terminal, the plain traceback is more useful."""
    sys.excepthook = _log_end
    threading.excepthook = _log_thread


def _log_end(kind: type[BaseException], error: BaseException, at: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, at)
    else:
        logger.critical("This process ends by a fault: %s", error, exc_info=(kind, error, at))


def _log_thread(end: threading.ExceptHookArgs) -> None:
    if end.exc_value is not None and end.exc_type is not SystemExit:
        name = end.thread.name if end.thread is not None else "unknown"
        info = (end.exc_type, end.exc_value, end.exc_traceback)
        logger.error("A thread ended by a fault: %s", end.exc_value, exc_info=info, extra={"of": name})
