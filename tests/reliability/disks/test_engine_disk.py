"""Row 54 for candles: while SQLite cannot be written they wait, ticks go on, and nothing is missing later."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager

import pytest
from django.db import connection

from tests.patience import wait_until
from tests.reliability.fixtures import Tell
from tests.reliability.services.engines import (
    NEVER_CLOSING,
    Publisher,
    Unanswered,
    make_publisher,
    stored,
    written,
)
from tests.reliability.services.processes import Installation, Process

SEED = 20_261_122
SYMBOL = "WAITING"
NOTICED = "The candles wait for the database"
pytestmark = pytest.mark.row("54", "nothing corrupted, live ticks continue")


@pytest.fixture
def publisher(embedded: Installation) -> Publisher:
    return make_publisher(embedded, SYMBOL, SEED)


@contextmanager
def locked(installation: Installation) -> Iterator[None]:
    """Somebody else writes, and takes his time."""
    path = installation.database_url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


@contextmanager
def full(server: Process) -> Iterator[None]:
    """No file of the server's grows any more."""
    before = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (4096, before[1]))
    yield
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, before)


def send_until_noticed(publisher: Publisher, server: Process) -> None:
    def is_noticed() -> bool:
        with contextlib.suppress(Unanswered):
            publisher.send(server.url)
        return NOTICED in server.log.read_text()

    wait_until(is_noticed)


def seq(installation: Installation) -> int:
    return stored(installation, SYMBOL).seq


def is_whole(installation: Installation) -> bool:
    with installation.orm(), connection.cursor() as cursor:
        cursor.execute("PRAGMA integrity_check")
        said: tuple[str] = cursor.fetchone()
    return said == ("ok",)


def epoch(installation: Installation) -> str:
    return stored(installation, SYMBOL).state.epoch


def send_through(
    fault: AbstractContextManager[None], installation: Installation, publisher: Publisher, server: Process
) -> int:
    """How many ticks waited for its end."""
    publisher.send(server.url)
    written(installation, SYMBOL, publisher.ticks)
    before = len(publisher.ticks)
    with fault:
        send_until_noticed(publisher, server)
        assert seq(installation) == before
    # Where not even the journal takes anything they are refused, and sent again.
    publisher.recover(server.url)
    waited = len(publisher.ticks) - before
    written(installation, SYMBOL, publisher.ticks)
    return waited


def kill(server: Process) -> None:
    os.kill(server.pid, signal.SIGKILL)


def test_ticks_are_accepted_while_nothing_can_be_written_and_written_afterwards(
    embedded: Installation, publisher: Publisher, tell: Tell
) -> None:
    epochs, waited = [], []
    with embedded.serve(1, **NEVER_CLOSING) as (server,):
        waited.append(send_through(locked(embedded), embedded, publisher, server))
        epochs.append(epoch(embedded))
        kill(server)
    with embedded.serve(1, **NEVER_CLOSING) as (server,):
        waited.append(send_through(full(server), embedded, publisher, server))
        epochs.append(epoch(embedded))
        kill(server)
        assert "The journal in" in server.log.read_text()
    with embedded.serve(1, **NEVER_CLOSING) as (server,):
        publisher.send(server.url)
        written(embedded, SYMBOL, publisher.ticks)
        epochs.append(epoch(embedded))
    tell(f"locked and full: {waited} ticks waited, 0 missing after it and a kill")
    # What waited for a lock stood in the journal, so that the numbering goes on. That of a full disk had a
    # hole, until the database held what was missing in it.
    assert epochs[0] == epochs[1] == epochs[2]
    assert is_whole(embedded)
