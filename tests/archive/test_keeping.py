"""What the engine let in is on the disk when the database says that it is written."""

from __future__ import annotations

import errno
import logging
import os
import threading
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
import time_machine

from archive.journal import HeardRecords, TickJournal, TickJournalWriter
from archive.keeper import keeper
from core.threads import in_thread
from instruments.catalogue import catalogue
from instruments.models import Instrument
from market import runtime
from market.engine import SymbolStanding
from market.models import Candle, LastQuote
from market.prices.records import AnyRecord, EmptyMinute, TickAccepted
from tests.archive.keeping import DAY_MS, HOUR_MS, KeptEngine, journal_of, tick
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.usefixtures("eurusd")


def kept_records(folder: Path) -> list[AnyRecord]:
    frames = [frame for segment in journal_of(folder).segments() for frame in segment.frames()]
    return [record for frame in frames if isinstance(frame, HeardRecords) for record in frame.records]


def kept_seqs(folder: Path) -> list[int]:
    return [record.seq for record in kept_records(folder) if isinstance(record, TickAccepted)]


def written_seq() -> int:
    return LastQuote.objects.get(instrument__symbol="EURUSD").seq


async def test_a_checkpoint_says_nothing_that_the_journal_lacks(folder: Path) -> None:
    async with KeptEngine(folder) as kept:
        kept.tick(1.08, DAY_MS + HOUR_MS, side=1)
        kept.tick(1.09, DAY_MS + HOUR_MS + 10)
        assert kept_seqs(folder) == []
        await kept.write()
        assert kept_seqs(folder) == [1, 2]
        assert await in_thread(written_seq) == 2
        first = kept_records(folder)[0]
    assert isinstance(first, TickAccepted)
    assert (first.source, first.side, first.bid) == ("push", 1, 1.08)


async def test_what_came_while_the_database_was_away_is_in_the_journal(folder: Path) -> None:
    async with KeptEngine(folder) as kept:
        await kept.write()
        kept.runner.writer.lease.is_held = True
        kept.tick(1.08, DAY_MS + HOUR_MS)
        notes = kept.keeper.notes(is_behind=False)
        # The transaction never comes to its notes, and the next one has none of its own.
        kept.keeper.notes(is_behind=False)()
        assert kept_seqs(folder) == [1]
        notes()
    assert kept_seqs(folder) == [1]


async def test_the_tail_of_a_killed_engine_is_kept_by_the_next(folder: Path) -> None:
    async with KeptEngine(folder) as kept:
        kept.tick(1.08, DAY_MS + HOUR_MS)
        await kept.write()
        kept.tick(1.09, DAY_MS + HOUR_MS + 10)
        await kept.kill()
    async with KeptEngine(folder) as kept:
        await kept.write()
    assert kept_seqs(folder) == [1, 2]


async def test_of_simulated_prices_not_even_a_file_is_kept(folder: Path) -> None:
    await Instrument.objects.aupdate(source="demo")
    await in_thread(catalogue.load_now)
    async with KeptEngine(folder, "demo") as kept:
        kept.walk(100, DAY_MS + HOUR_MS)
        await kept.write()
    assert journal_of(folder).segments() == []


async def test_flat_minutes_are_kept_with_their_source(folder: Path) -> None:
    async with KeptEngine(folder) as kept:
        kept.tick(1.08, DAY_MS + HOUR_MS)
        for minute in range(1, 6):
            kept.pass_time(DAY_MS + HOUR_MS + minute * 60_000 + 2_000)
        await kept.write()
    flat = [record for record in kept_records(folder) if isinstance(record, EmptyMinute)]
    assert [record.source for record in flat] == ["push"] * 3


async def test_archive_0_keeps_nothing(folder: Path, settings: Any) -> None:
    assert keeper in runtime.market.engine_listeners
    settings.ARCHIVE = False
    async with KeptEngine(folder) as kept:
        kept.tick(1.08, DAY_MS + HOUR_MS)
        await kept.write()
    assert not journal_of(folder).path.exists()


class FullDisk(TickJournal):
    """Its files take nothing until there is room again: the kernel's own full device."""

    is_full = False

    def create(self, day: date) -> tuple[int, Path]:
        opened, path = super().create(day)
        if not self.is_full:
            return opened, path
        os.close(opened)
        return os.open("/dev/full", os.O_WRONLY), path


def batch(*seqs: int) -> list[tuple[str, list[AnyRecord]]]:
    return [("e", [tick(seq, DAY_MS + seq) for seq in seqs])]


def writer_in(journal: TickJournal) -> TickJournalWriter:
    return TickJournalWriter(journal, "bid", {"EURUSD": SymbolStanding(0, 0)}, DAY_MS)


def test_a_full_disk_loses_nothing_that_still_fits_into_memory(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    journal = FullDisk(tmp_path / "var" / "ticks")
    writer = writer_in(journal)
    journal.is_full = True
    with caplog.at_level(logging.ERROR):
        writer.write(batch(1))
        writer.write(batch(2))
    assert writer.fault == os.strerror(errno.ENOSPC)
    assert "stands still, prices go on" in caplog.text
    # Files without a head would pile up, one a second.
    assert journal.segments() == []
    journal.is_full = False
    writer.write(batch(3))
    writer.close()
    assert (writer.fault, writer.lost) == ("", 0)
    assert kept_seqs(tmp_path) == [1, 2, 3]


def test_a_file_that_was_removed_is_begun_anew(tmp_path: Path) -> None:
    journal = TickJournal(tmp_path / "var" / "ticks")
    writer = writer_in(journal)
    writer.write(batch(1))
    journal.remove(*journal.segments())
    writer.write(batch(2))
    assert writer.fault == "the file of the open day was removed"
    writer.write(batch(3))
    writer.close()
    assert (writer.fault, kept_seqs(tmp_path)) == ("", [2, 3])


def test_what_does_not_fit_goes_the_oldest_first_and_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("archive.journal.MOST_WAITING", 1_000)
    journal = FullDisk(tmp_path / "var" / "ticks")
    writer = writer_in(journal)
    journal.is_full = True
    writer.write(batch(*range(1, 2_001)))
    assert writer.lost == 1_000
    journal.is_full = False
    writer.write([])
    writer.close()
    assert kept_seqs(tmp_path) == list(range(1_001, 2_001))


async def test_candles_are_written_while_the_archive_stands_still(folder: Path) -> None:
    folder.joinpath("var").write_text("a file where the folder should be")
    async with KeptEngine(folder) as kept:
        kept.tick(1.08, DAY_MS + HOUR_MS)
        kept.pass_time(DAY_MS + HOUR_MS + 63_000)
        await kept.write()
        assert kept.keeper.fault
        assert await in_thread(Candle.objects.filter(timeframe="1m").count) == 1


async def test_while_the_disk_hangs_it_says_so_and_nothing_piles_up(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("archive.keeper.PATIENCE_S", 0.05)
    async with KeptEngine(folder) as kept:
        answers, taken, writer = threading.Event(), [], kept.keeper.writer
        assert writer is not None
        write = writer.write

        def write_slowly(batches: list[Any]) -> None:
            answers.wait(PATIENCE_S)
            taken.append(len(batches))
            write(batches)

        monkeypatch.setattr(writer, "write", write_slowly)
        for number in range(5):
            kept.tick(1.08, DAY_MS + HOUR_MS + number)
            await kept.write()
        assert kept.keeper.fault == "the disk hangs"
        monkeypatch.setattr("archive.keeper.PATIENCE_S", PATIENCE_S)
        answers.set()
        await kept.write()
        await kept.write()
        assert kept.keeper.fault == ""
        assert taken[:2] == [1, 4]
    assert kept_seqs(folder) == [1, 2, 3, 4, 5]


def test_a_fault_of_ours_holds_no_checkpoint_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(record: AnyRecord) -> bytes:
        raise RuntimeError("a fault of ours")

    writer = writer_in(TickJournal(tmp_path / "ticks"))
    monkeypatch.setattr("archive.journal.framed", broken)
    writer.write(batch(1))
    assert (writer.lost, writer.fault) == (1, "it broke: see the log")


def test_a_clock_that_was_ahead_leaves_no_segment_that_grows_for_ever(
    tmp_path: Path, clock: time_machine.Traveller
) -> None:
    journal = TickJournal(tmp_path / "var" / "ticks")
    writer = writer_in(journal)
    clock.move_to(datetime(2036, 1, 1, tzinfo=UTC))
    writer.write(batch(1))
    clock.move_to(datetime(2026, 11, 18, 1, tzinfo=UTC))
    writer.write(batch(2))
    writer.close()
    assert [segment.day for segment in journal.segments()] == [date(2036, 1, 1), date(2026, 11, 18)]
