"""Row 12 over restarts of a single process: who was away gets exactly what was missed, or is told."""

from __future__ import annotations

import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.reliability.conftest import Tell
from tests.reliability.services.processes import Installation

from .returning import Restarts

TERM, KILL = signal.SIGTERM, signal.SIGKILL
pytestmark = pytest.mark.usefixtures("rows")


@pytest.mark.row("12", "across restarts of one process: no gaps, no duplicates, every client recovers")
def test_clients_resume_across_restarts(embedded: Installation, tell: Tell) -> None:
    check_restarts(embedded, (KILL, TERM), tell)


def check_restarts(embedded: Installation, ends: tuple[signal.Signals, ...], tell: Tell) -> None:
    restarts = Restarts(embedded)
    for ends_by in ends:
        restarts.run(ends_by, is_busy=ends_by is KILL)
    restarts.finish()

    missing, again = restarts.faults()
    count = sum(len(bids) for bids in restarts.acknowledged.values())
    tell(
        f"{count} ticks over {len(ends)} restarts: missing: {missing}, duplicated: {again}, "
        f"unrecovered {restarts.unrecovered()}, numberings {restarts.numberings()}"
    )
    assert (missing, again) == (0, 0)
    assert (restarts.lost(), restarts.contradictions()) == (0, 0)
    assert (restarts.unrecovered(), restarts.numberings()) == (0, 1)


def kept(directory: Path) -> list[Path]:
    return sorted((directory / "journal").glob("*.kept"))


def alter_the_last(directory: Path) -> None:
    path = kept(directory)[-1]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.row("12, 13", "what was tampered with is told, and never recovered in part")
def test_control_lost_journal_entries_are_reported(embedded: Installation, tell: Tell) -> None:
    check_tampered(embedded, alter_the_last, tell)


def check_tampered(embedded: Installation, tamper: Callable[[Path], None], tell: Tell) -> None:
    restarts = Restarts(embedded)
    restarts.run(TERM)
    tamper(embedded.directory)
    restarts.finish()

    missing, again = restarts.faults()
    tell(f"{tamper.__name__.replace('_', ' ')}: missing: {missing}, not recovered: {restarts.unrecovered()}")
    # Of both streams: the client that left before the last ticks.
    assert [client.recovered[-1] for client in restarts.leaving] == [False, False]
    assert missing > 0


def copy(database: Path, into: Path) -> None:
    """With what stands beside it in its log."""
    with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(into)) as target:
        source.backup(target)


@pytest.mark.row("13", "with an older database, no client recovers")
def test_no_client_recovers_from_a_restored_older_database(embedded: Installation, tell: Tell) -> None:
    restarts, database = Restarts(embedded), embedded.directory / "embedded.sqlite3"
    restarts.run(TERM)
    older = embedded.directory / "older.sqlite3"
    copy(database, older)
    restarts.run(TERM)
    copy(older, database)
    restarts.finish()

    tell(f"distinct epochs: {restarts.numberings()}; not recovered: {restarts.unrecovered()}")
    assert restarts.numberings() == 2
    assert [client.recovered[-1] for client in restarts.clients] == [False] * 4
