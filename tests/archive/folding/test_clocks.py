"""A clock that was ahead neither stops the archive nor empties it."""

from __future__ import annotations

import logging
from datetime import date, timedelta
from pathlib import Path

import pytest
import time_machine

from tests.archive.keeping import (
    DAY,
    DAY_MS,
    HOUR_MS,
    NEXT_MS,
    NIGHT,
    fold,
    holes,
    journal_of,
    manifest_of,
    seqs,
    store_of,
    tick,
    write,
)
from tests.factories import make_instrument

pytestmark = pytest.mark.django_db(transaction=True)
NEXT = date(2026, 11, 19)
YEAR = timedelta(days=365)


def test_days_are_archived_after_a_clock_was_a_year_ahead(
    folder: Path, clock: time_machine.Traveller
) -> None:
    make_instrument()
    write(folder, tick(1, DAY_MS + 1), tick(2, DAY_MS + 2))
    assert fold(folder, NIGHT + YEAR) == [DAY]
    # The day was not over: it goes on, and so does the next one.
    write(folder, tick(3, DAY_MS + HOUR_MS), began=2, at_ms=DAY_MS + 3)
    clock.move_to(NIGHT)
    write(folder, tick(4, NEXT_MS + HOUR_MS), began=3, at_ms=NEXT_MS + HOUR_MS)
    assert fold(folder, NIGHT + timedelta(days=1)) == [DAY, NEXT]
    assert (seqs(folder), seqs(folder, NEXT)) == ([1, 2, 3], [4])
    assert (holes(folder), holes(folder, NEXT)) == ([], [])
    assert journal_of(folder).segments() == []


def test_a_note_of_a_day_to_come_hides_no_segment(folder: Path) -> None:
    make_instrument()
    path = journal_of(folder).path
    path.mkdir(parents=True)
    path.joinpath("folded.json").write_bytes(b'{"day":"2027-11-24","last":{}}')
    write(folder, tick(1, DAY_MS + 1))
    assert fold(folder) == [DAY]
    assert str(DAY).encode() in path.joinpath("folded.json").read_bytes()


def test_a_day_of_nothing_is_not_noted(folder: Path) -> None:
    make_instrument()
    assert fold(folder, NIGHT + YEAR) == []
    assert not (journal_of(folder).path / "folded.json").exists()


def test_a_clock_that_is_ahead_does_not_empty_the_archive(folder: Path) -> None:
    make_instrument()
    write(folder, tick(1, DAY_MS + 1))
    fold(folder, NIGHT + YEAR, keep_days=30)
    assert manifest_of(folder).files != []


def test_what_is_dropped_is_said(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    make_instrument()
    write(folder, tick(1, DAY_MS + 1))
    fold(folder)
    for number in (2, 3):
        write(folder, tick(number, DAY_MS + (number - 1) * 24 * HOUR_MS), began=number - 1, at_ms=DAY_MS)
    with caplog.at_level(logging.INFO, "archive"):
        fold(folder, NIGHT + timedelta(days=2), keep_days=1)
    said = {record.getMessage(): record.levelno for record in caplog.records}
    assert said["Dropped 2026-11-18 from the archive: ARCHIVE_DAYS is 1"] == logging.INFO
    assert said["Dropped 2026-11-19 as soon as it was archived: ARCHIVE_DAYS is 1"] == logging.WARNING
    assert store_of(folder).listing("manifests/") == ["manifests/2026-11-20.json"]
