"""A day's journal becomes files that say what was accepted, and what is missing."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import time_machine

from archive.folding.day_files import NotUsable
from archive.journal import SIZES, VERSION, HeardRecords, Opened, framed
from archive.manifests import MOST_HOLES, NumberGap, joined
from archive.proving import verify_day
from archive.stores import DiskStore
from core.threads import in_thread
from core.times import MINUTE_MS
from instruments.models import Instrument, WithheldSource
from market.models import LastQuote
from market.prices.candles import PriceBar
from market.prices.records import HistoryMinute, SeriesBegan, TickAccepted
from tests.archive.keeping import (
    DAY,
    DAY_MS,
    HOUR_MS,
    NEXT_MS,
    NIGHT,
    KeptEngine,
    archive,
    file_of,
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

pytestmark = pytest.mark.usefixtures("eurusd")
NEXT, NEXT_NIGHT = date(2026, 11, 19), NIGHT + timedelta(days=1)


async def test_a_day_becomes_files_and_its_journal_goes(folder: Path) -> None:
    async with KeptEngine(folder) as kept:
        kept.walk(300, DAY_MS + HOUR_MS)
        await kept.end_day()
    assert await in_thread(fold, folder) == [DAY]
    ticks, candles = file_of(folder), file_of(folder, "candles")
    assert (ticks.rows, ticks.sources, candles.sources) == (300, ["push"], ["push"])
    for file in (ticks, candles):
        data = store_of(folder).read(file.path)
        assert (file.bytes, file.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    assert manifest_of(folder).complete
    assert [segment.day for segment in journal_of(folder).segments()] == [NEXT]
    # Done once: the next night has nothing to do.
    assert await in_thread(fold, folder) == []


def test_the_columns_are_those_that_are_documented(folder: Path) -> None:
    archive(folder, tick(1, DAY_MS + 1), tick(2, DAY_MS + 2))
    table = pq.read_table(store_of(folder).root / file_of(folder).path)
    name = "dictionary<values=string, indices=int32, ordered=0>"
    assert {field.name: str(field.type) for field in table.schema} == {
        **{"seq": "int64", "epoch": name, "time": "timestamp[ms, tz=UTC]", "side": "int8", "source": name},
        **dict.fromkeys(("bid", "ask", "volume"), "double"),
        **{"accepted_ms": "int64", "feed": name, "settled": "bool", "unsettled_ms": "int64"},
    }
    row = table.to_pylist()[0]
    assert row["time"] == datetime(2026, 11, 18, 0, 0, 0, 1000, UTC)
    assert (row["epoch"], row["bid"], row["side"], row["source"]) == ("epoch", 1.08, 1, "kraken")
    meta = pq.ParquetFile(store_of(folder).root / file_of(folder).path).metadata
    assert meta.row_group(0).column(0).compression == "ZSTD"


def test_what_was_written_twice_counts_once(folder: Path) -> None:
    write(folder, tick(1, DAY_MS + 1), tick(2, DAY_MS + 2))
    write(folder, tick(2, DAY_MS + 2), tick(3, DAY_MS + 3), began=2)
    fold(folder)
    assert seqs(folder) == [1, 2, 3]
    assert manifest_of(folder).complete


def test_a_series_that_was_written_twice_began_once(folder: Path) -> None:
    began = SeriesBegan("EURUSD", False, DAY_MS + 2, 1)
    records: list[TickAccepted | SeriesBegan] = [tick(1, DAY_MS + 1), began, tick(2, DAY_MS + 3)]
    write(folder, *records)
    # The disk did not say that it has them, so the same engine wrote them again.
    again = HeardRecords("epoch", [*records, tick(3, DAY_MS + 4)])
    opened, path = journal_of(folder).create(DAY)
    os.close(opened)
    path.write_bytes(framed(Opened(VERSION, DAY_MS, "bid")) + framed(again))
    fold(folder)
    assert seqs(folder) == [1, 2, 3]


def test_numbers_that_were_given_again_are_those_of_the_later_engine(folder: Path) -> None:
    write(folder, tick(1, DAY_MS + 1), tick(2, DAY_MS + 2), tick(3, DAY_MS + 3))
    # A power cut took the end of the database along, and no candle counts what was in it.
    write(folder, tick(2, DAY_MS + 20), began=1)
    fold(folder)
    table = pq.read_table(store_of(folder).root / file_of(folder).path)
    assert [(row["seq"], row["time"].microsecond // 1000) for row in table.to_pylist()] == [(1, 1), (2, 20)]
    assert manifest_of(folder).complete


def test_an_older_database_gives_the_numbers_of_days_before_again(
    folder: Path, clock: time_machine.Traveller
) -> None:
    archive(folder, tick(1, DAY_MS + 1), tick(2, DAY_MS + 2), tick(3, DAY_MS + 3))
    clock.move_to(NIGHT)
    write(folder, tick(2, NEXT_MS + 1), tick(3, NEXT_MS + 2), began=1, at_ms=NEXT_MS)
    fold(folder, NEXT_NIGHT)
    assert seqs(folder, NEXT) == [2, 3]


def test_missing_numbers_are_a_hole_between_two_ticks_on_both_sides_of_midnight(folder: Path) -> None:
    archive(folder, *(tick(n, DAY_MS + hour * HOUR_MS) for n, hour in ((1, 1), (5, 2), (8, 25))))
    write(folder, tick(9, NEXT_MS + 2 * HOUR_MS), began=8, at_ms=NEXT_MS + 2 * HOUR_MS)
    fold(folder, NEXT_NIGHT)
    assert holes(folder) == [("01:00:00", "02:00:00", 3), ("02:00:00", "00:00:00", 2)]
    assert holes(folder, NEXT) == [("00:00:00", "01:00:00", 2)]


def test_what_an_engine_knows_and_the_journal_does_not_is_a_hole(folder: Path) -> None:
    write(folder, tick(1, DAY_MS + HOUR_MS))
    write(folder, tick(9, DAY_MS + 3 * HOUR_MS), began=8, at_ms=DAY_MS + 2 * HOUR_MS)
    fold(folder)
    assert holes(folder) == [("01:00:00", "02:00:00", 7)]


def test_what_the_database_knows_and_the_journal_does_not_is_a_hole_until_the_end(
    folder: Path, eurusd: Instrument
) -> None:
    LastQuote.objects.create(instrument=eurusd, bid=1, ask=1, quoted_at=NIGHT, seq=4, source="kraken")
    archive(folder, tick(1, DAY_MS + HOUR_MS))
    assert holes(folder) == [("01:00:00", "00:00:00", 3)]


def test_an_archive_that_begins_at_noon_does_not_pretend_to_know_the_morning(folder: Path) -> None:
    write(folder, tick(8, DAY_MS + 13 * HOUR_MS), began=7, at_ms=DAY_MS + 12 * HOUR_MS)
    fold(folder)
    assert holes(folder) == [("00:00:00", "12:00:00", None)]


def test_numbers_of_simulated_ticks_are_no_hole(folder: Path) -> None:
    to_demo = SeriesBegan("EURUSD", True, DAY_MS + 2, 1)
    to_real = SeriesBegan("EURUSD", False, DAY_MS + HOUR_MS, 900)
    write(folder, tick(1, DAY_MS + 1), to_demo)
    write(folder, to_real, tick(901, DAY_MS + HOUR_MS + 1), began=500)
    fold(folder)
    assert seqs(folder) == [1, 901]
    assert manifest_of(folder).complete


def test_files_of_a_source_that_may_not_be_handed_on_are_not_made(folder: Path) -> None:
    make_instrument("BTCUSD")
    WithheldSource.objects.create(name="binance")
    archive(folder, tick(1, DAY_MS + 1), tick(1, DAY_MS + 1, "BTCUSD", "binance"))
    assert [file.symbol for file in manifest_of(folder).files] == ["EURUSD"]
    assert store_of(folder).listing("ticks/BTCUSD") == []


@pytest.mark.parametrize("after_ms", [(1, 2), (0, 2 * HOUR_MS)], ids=["between", "in the same moments"])
def test_parts_of_two_machines_make_one_day(folder: Path, tmp_path: Path, after_ms: tuple[int, int]) -> None:
    first, last = DAY_MS + HOUR_MS, DAY_MS + 3 * HOUR_MS
    others = tick(1, first, "GBPUSD"), tick(3, first + HOUR_MS, "GBPUSD")
    archive(folder, tick(1, DAY_MS + 1), tick(2, first), tick(5, last), *others)
    assert holes(folder) == [("01:00:00", "03:00:00", 2), ("01:00:00", "02:00:00", 1)]
    other = tmp_path / "other"
    other.mkdir()
    (other / "archive").symlink_to(folder / "archive")
    more = (tick(seq, first + ms) for seq, ms in zip((3, 4), after_ms, strict=True))
    write(other, *more, began=2, at_ms=first)
    fold(other)
    assert seqs(folder) == [1, 2, 3, 4, 5]
    assert [hole.symbol for hole in manifest_of(folder).holes] == ["GBPUSD"]


def test_nothing_is_folded_before_the_day_is_over(folder: Path) -> None:
    write(folder, tick(1, DAY_MS + 1))
    assert fold(folder, datetime(2026, 11, 19, 0, 1, tzinfo=UTC)) == []
    assert fold(folder, datetime(2026, 11, 19, 0, 2, tzinfo=UTC)) == [DAY]


def test_old_days_are_dropped_and_the_youngest_stay(folder: Path) -> None:
    for number in range(4):
        write(folder, tick(number + 1, DAY_MS + number * 24 * HOUR_MS), began=number, at_ms=DAY_MS)
    now = NIGHT + timedelta(days=3)
    fold(folder, now)
    assert len(store_of(folder).listing("manifests/")) == 4
    fold(folder, now, keep_days=2)
    days = [date(2026, 11, 20), date(2026, 11, 21)]
    kept = [f"manifests/{day}.json" for day in days] + [f"ticks/EURUSD/{day}.parquet" for day in days]
    assert store_of(folder).listing() == kept


def minutes_of(folder: Path) -> list[dict[str, Any]]:
    """What the file of ticks says of minutes without ticks."""
    file = pq.ParquetFile(store_of(folder).root / file_of(folder).path)
    found: list[dict[str, Any]] = json.loads(file.metadata.metadata[b"tickwire"])["minutes"]
    return found


def history(opened_ms: int) -> HistoryMinute:
    bar = PriceBar(opened_ms, 1.08, 1.08, 1.08, 1.08, 1.0, 1.09, 1.09, "kraken")
    return HistoryMinute("EURUSD", bar, "trades")


def test_minutes_that_a_later_engine_did_not_know_of_do_not_count(folder: Path) -> None:
    write(folder, tick(1, DAY_MS + 1), history(DAY_MS + HOUR_MS), history(DAY_MS + 3 * HOUR_MS))
    write(folder, tick(2, DAY_MS + 2), began=1, closed_until_ms=DAY_MS + 4 * HOUR_MS)
    # A power cut took the end of the database along.
    write(folder, tick(3, DAY_MS + 3), began=2, closed_until_ms=DAY_MS + 2 * HOUR_MS)
    fold(folder)
    assert [minute["minute"] for minute in minutes_of(folder)] == [DAY_MS + HOUR_MS]


def test_what_comes_of_a_day_after_its_files_were_made_is_put_with_them(folder: Path) -> None:
    archive(folder, tick(1, DAY_MS + 1))
    late = tick(2, DAY_MS + 2), history(DAY_MS + HOUR_MS), tick(3, NEXT_MS + HOUR_MS)
    write(folder, *late, began=1, at_ms=NEXT_MS + HOUR_MS)
    fold(folder, NEXT_NIGHT)
    assert (seqs(folder), seqs(folder, NEXT)) == ([1, 2], [3])
    assert manifest_of(folder).complete
    assert manifest_of(folder, NEXT).complete
    (minute,) = minutes_of(folder)
    assert (minute["minute"], minute["kind"], minute["close"]) == (DAY_MS + HOUR_MS, "history", 1.08)


async def test_minutes_that_come_after_their_day_was_folded_are_in_its_file(
    folder: Path, clock: time_machine.Traveller
) -> None:
    async with KeptEngine(folder) as kept:
        kept.tick(1.08, DAY_MS + HOUR_MS)
        await kept.write()
        # The source is away over midnight.
        clock.move_to(NIGHT)
        assert await in_thread(fold, folder) == [DAY]
        late = PriceBar(DAY_MS + 2 * HOUR_MS, 1.08, 1.09, 1.07, 1.08, 3.0, 1.09, 1.07)
        kept.backfill([late], NEXT_MS + 10 * MINUTE_MS)
        await kept.write()
    await in_thread(fold, folder, NEXT_NIGHT)
    assert [minute["minute"] for minute in minutes_of(folder)] == [late.opened_ms]


# A clock that was ahead neither stops the archive nor empties it.
def test_days_are_archived_after_a_clock_was_a_year_ahead(
    folder: Path, clock: time_machine.Traveller
) -> None:
    ahead = NIGHT + timedelta(days=365)
    assert fold(folder, ahead) == []
    assert not (journal_of(folder).path / "folded.json").exists()
    write(folder, tick(1, DAY_MS + 1), tick(2, DAY_MS + 2))
    assert fold(folder, ahead, keep_days=30) == [DAY]
    assert manifest_of(folder).files != []
    # The day was not over: it goes on, and so does the next one.
    write(folder, tick(3, DAY_MS + HOUR_MS), began=2, at_ms=DAY_MS + 3)
    clock.move_to(NIGHT)
    write(folder, tick(4, NEXT_MS + HOUR_MS), began=3, at_ms=NEXT_MS + HOUR_MS)
    assert fold(folder, NEXT_NIGHT) == [DAY, NEXT]
    assert (seqs(folder), seqs(folder, NEXT)) == ([1, 2, 3], [4])
    assert (holes(folder), holes(folder, NEXT)) == ([], [])
    assert journal_of(folder).segments() == []


def test_a_note_of_a_day_to_come_hides_no_segment(folder: Path) -> None:
    path = journal_of(folder).path
    path.mkdir(parents=True)
    path.joinpath("folded.json").write_bytes(b'{"day":"2027-11-24","last":{}}')
    write(folder, tick(1, DAY_MS + 1))
    assert fold(folder) == [DAY]
    assert str(DAY).encode() in path.joinpath("folded.json").read_bytes()


def test_what_is_dropped_is_said(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    archive(folder, tick(1, DAY_MS + 1))
    for number in (2, 3):
        write(folder, tick(number, DAY_MS + (number - 1) * 24 * HOUR_MS), began=number - 1, at_ms=DAY_MS)
    with caplog.at_level(logging.INFO, "archive"):
        fold(folder, NIGHT + timedelta(days=2), keep_days=1)
    said = {record.getMessage(): record.levelno for record in caplog.records}
    assert said["Dropped 2026-11-18 from the archive: ARCHIVE_DAYS is 1"] == logging.INFO
    assert said["Dropped 2026-11-19 as soon as it was archived: ARCHIVE_DAYS is 1"] == logging.WARNING
    assert store_of(folder).listing("manifests/") == ["manifests/2026-11-20.json"]


SMALL = [NumberGap(at, at + 1, 2) for at in range(MOST_HOLES)]


@pytest.mark.parametrize(
    ("gaps", "expected"),
    [
        (SMALL, SMALL),
        ([*SMALL, NumberGap(90, 99, 5)], [NumberGap(0, 99, 2 * MOST_HOLES + 5)]),
        ([*SMALL, NumberGap(90, 99, None)], [NumberGap(0, 99, None)]),
        (
            [NumberGap(0, 99, 7, is_lost=True), *SMALL],
            [NumberGap(0, 99, 7, is_lost=True), NumberGap(0, MOST_HOLES, 2 * MOST_HOLES)],
        ),
    ],
    ids=["few", "many", "of which one is unknown", "and one that is lost"],
)
def test_many_holes_are_told_as_one(gaps: list[NumberGap], expected: list[NumberGap]) -> None:
    assert joined(gaps) == expected


# What was damaged or is gone is never passed for data, and never for nothing.
AFTER = NIGHT + timedelta(days=1)
LOST = ("00:00:00", "00:00:00", 59)


@pytest.fixture
def late(folder: Path, eurusd: object) -> Path:
    """A day has its file, and ticks of it come after that."""
    archive(folder, *(tick(seq, DAY_MS + seq) for seq in range(1, 60)))
    at_ms = DAY_MS + HOUR_MS
    write(folder, *(tick(seq, at_ms + seq) for seq in range(64, 69)), began=59, at_ms=DAY_MS + 60)
    return folder


def stored(folder: Path) -> Path:
    return store_of(folder).root / f"ticks/EURUSD/{DAY}.parquet"


def flip(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


def test_a_damaged_file_gets_no_new_digest(late: Path) -> None:
    # In a page of values; Parquet notices nothing there.
    flip(stored(late), 300)
    data, before = stored(late).read_bytes(), manifest_of(late)
    for _ in range(2):
        with pytest.raises(NotUsable, match="its SHA-256 is .* remove it, which costs the ticks") as raised:
            fold(late, AFTER)
        assert ".." not in str(raised.value)
    assert (manifest_of(late), stored(late).read_bytes()) == (before, data)
    assert journal_of(late).segments() != []


def test_a_file_that_is_gone_is_a_hole(late: Path, caplog: pytest.LogCaptureFixture) -> None:
    stored(late).unlink()
    fold(late, AFTER)
    assert seqs(late) == [64, 65, 66, 67, 68]
    assert holes(late) == [LOST, ("00:00:00", "01:00:00", 4)]
    assert f"ticks/EURUSD/{DAY}.parquet is gone: its ticks (59) are a hole" in caplog.text
    verdict = verify_day(store_of(late), DAY)
    assert (verdict.faults, verdict.counts["ticks"]) == ([], 5)
    assert "Ticks are missing of EURUSD" in verdict.notes[0]


def test_other_ticks_fill_no_hole_of_a_file_that_is_gone(late: Path, tmp_path: Path) -> None:
    stored(late).unlink()
    fold(late, AFTER)
    other = tmp_path / "other"
    other.mkdir()
    (other / "archive").symlink_to(late / "archive")
    at_ms = DAY_MS + HOUR_MS
    more = [*range(60, 64), *range(69, 200)]
    write(other, *(tick(seq, at_ms + seq) for seq in more), began=59, at_ms=DAY_MS + 60)
    fold(other, AFTER)
    assert seqs(late) == list(range(60, 200))
    assert LOST in holes(late)


class StoppedStore(DiskStore):
    """The disk is full when it comes to this manifest."""

    def __init__(self, root: Path, number: int) -> None:
        super().__init__(root)
        self._left = number

    def put(self, path: str, local: Path) -> None:
        if path.startswith("manifests/"):
            self._left -= 1
            if not self._left:
                raise OSError(28, "No space left on device")
        super().put(path, local)


def fold_stopped(folder: Path, number: int, patch: pytest.MonkeyPatch) -> None:
    with patch.context() as patched:
        patched.setattr("tests.archive.keeping.store_of", lambda _: StoppedStore(folder / "archive", number))
        with pytest.raises(OSError, match="No space left"):
            fold(folder, AFTER)


def test_a_file_that_was_replaced_before_its_manifest_is_not_damaged(
    late: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = stored(late).read_bytes()
    for _ in range(2):
        fold_stopped(late, 1, monkeypatch)
        assert stored(late).read_bytes() != before
    fold(late, AFTER)
    assert seqs(late) == [*range(1, 60), *range(64, 69)]
    assert verify_day(store_of(late), DAY).faults == []
    assert not (journal_of(late).path / "handed.json").exists()


def test_what_is_gone_stays_a_hole_when_the_night_is_stopped(
    late: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(late).unlink()
    fold_stopped(late, 2, monkeypatch)
    assert seqs(late) == [64, 65, 66, 67, 68]
    fold(late, AFTER)
    assert LOST in holes(late)
    assert file_of(late).rows == 5


@pytest.mark.parametrize("byte", [2, SIZES + 40])
def test_a_damaged_frame_costs_its_own_ticks(
    folder: Path, caplog: pytest.LogCaptureFixture, byte: int
) -> None:
    write(folder, *(tick(seq, DAY_MS + seq * 1000) for seq in range(1, 1501)))
    (segment,) = [each.path for each in journal_of(folder).segments()]
    whole = segment.read_bytes()
    # The second of three frames.
    start = whole.index(b"\x93\x01", whole.index(b"\x93\x01") + 1) - SIZES
    size = SIZES + int.from_bytes(whole[start : start + 4], "big")
    flip(segment, start + byte)
    with caplog.at_level(logging.WARNING):
        fold(folder)
    assert seqs(folder) == [*range(1, 501), *range(1001, 1501)]
    assert holes(folder) == [("00:08:20", "00:16:41", 500)]
    aside = segment.with_name(f"{segment.name}.damaged")
    assert aside.stat().st_size == len(whole)
    (said,) = caplog.messages
    assert f"Not read: {size} bytes at byte {start}. The segment is kept as {aside}" in said
    assert journal_of(folder).segments() == []


def test_a_segment_without_its_head_is_kept_aside(folder: Path) -> None:
    write(folder, tick(1, DAY_MS + 1))
    write(folder, tick(2, DAY_MS + 2), began=1)
    write(folder, tick(3, DAY_MS + 3), began=2, at_ms=DAY_MS + 3)
    second = journal_of(folder).segments()[1].path
    flip(second, SIZES + 3)
    fold(folder)
    assert seqs(folder) == [1, 3]
    assert [missing for *_, missing in holes(folder)] == [1]
    assert second.with_name(f"{second.name}.damaged").exists()


def test_a_torn_end_is_ordinary(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(folder, tick(1, DAY_MS + 1))
    (segment,) = journal_of(folder).segments()
    with segment.path.open("ab") as file:
        file.write(b"\0\0\1\0" + b"\x93\x01" * 20)
    with caplog.at_level(logging.WARNING):
        fold(folder)
    assert (seqs(folder), caplog.records) == ([1], [])
    assert list(journal_of(folder).path.glob("*.damaged")) == []
