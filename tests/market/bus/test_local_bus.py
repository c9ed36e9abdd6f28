"""The journal of an engine within its process: what was published is there after a kill -9."""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from market.engine.bus.journal import KEEP_MS, encode
from market.engine.bus.journal_folder import JournalHead
from market.engine.bus.local_bus import LocalBus, LocalJournal
from market.prices.records import AnyRecord, CandlesEnded, JournalPosition, StatusRecord

from .journal_processes import JournalWriter, Process, begun, taken


def test_what_was_not_written_is_the_tail_of_the_next(tmp_path: Path) -> None:
    first = begun(tmp_path)
    written = first.bus.seal()
    first.bus.written(written)
    first.bus.publish([taken(1), taken(2)])
    first.bus.publish([CandlesEnded("EURUSD", 60_000)])
    first.kill()

    second = Process(tmp_path)

    assert second.start(written) == [taken(1), taken(2), CandlesEnded("EURUSD", 60_000)]
    assert second.bus.journal_position.epoch == written.epoch


def test_what_was_written_comes_no_second_time(tmp_path: Path) -> None:
    first = begun(tmp_path)
    first.bus.publish([taken(1)])
    written = first.bus.seal()
    first.bus.publish([taken(2)])
    first.kill()

    assert Process(tmp_path).start(written) == [taken(2)]


@pytest.mark.parametrize("idle_s", [1, 3])
def test_nothing_is_lost_after_an_idle_second_that_was_not_written_either(
    tmp_path: Path, idle_s: int
) -> None:
    first = begun(tmp_path)
    first.bus.publish([taken(1)])
    written = first.bus.seal()
    first.bus.written(written)
    for _ in range(idle_s):
        first.bus.publish([StatusRecord("", b"{}")])
        # The database does not take it.
        first.bus.seal()
    first.bus.publish([taken(2)])
    first.kill()

    second = Process(tmp_path)

    assert second.start(written) == [taken(2)]
    assert second.bus.journal_position.epoch == written.epoch


def test_two_kills_in_a_row_lose_nothing(tmp_path: Path) -> None:
    first = begun(tmp_path)
    written = first.bus.seal()
    first.bus.publish([taken(1)])
    first.kill()
    second = Process(tmp_path)
    second.start(written)
    second.bus.publish([taken(2)])
    second.kill()

    assert Process(tmp_path).start(written) == [taken(1), taken(2)]


def test_the_numbering_goes_on_after_an_end_in_order(tmp_path: Path) -> None:
    first = begun(tmp_path)
    first.bus.publish([taken(1)])
    written = first.bus.seal()
    first.bus.written(written)
    asyncio.run(first.bus.close())

    second = Process(tmp_path)

    assert second.start(written) == []
    assert second.bus.journal_position == written


def test_a_kill_before_the_first_tick_begins_nothing_anew(tmp_path: Path) -> None:
    first = begun(tmp_path)
    first.bus.written(first.bus.seal())
    position = first.kill()

    second = Process(tmp_path)

    assert second.start(position) == []
    assert second.bus.journal_position == position


def test_a_kill_long_after_the_last_tick_begins_nothing_anew(tmp_path: Path) -> None:
    first = begun(tmp_path)
    backup = quiet_since(first)
    position = first.kill()

    second = Process(tmp_path)

    assert second.start(position) == []
    assert second.bus.journal_position == position != backup


def test_control_an_older_database_is_noticed_long_after_the_last_tick(tmp_path: Path) -> None:
    first = begun(tmp_path)
    backup = quiet_since(first)
    first.kill()
    second = Process(tmp_path)

    assert second.start(backup) == []
    assert second.bus.journal_position.epoch != backup.epoch


def quiet_since(process: Process) -> JournalPosition:
    """Some ticks, all in the database, long ago: where that was before them."""
    before = process.bus.seal()
    process.bus.written(before)
    process.bus.publish([taken(1)])
    process.bus.written(process.bus.seal())
    process.bus.publish([taken(2)])
    process.bus.written(process.bus.seal())
    process.journal.forget(process.bus.journal_position.number, time.time_ns() // 1_000_000 + 2 * KEEP_MS)
    return before


@pytest.mark.parametrize("known", ["older", "another"])
def test_a_database_that_does_not_fit_begins_anew(tmp_path: Path, known: str) -> None:
    first = begun(tmp_path)
    first.bus.written(first.bus.seal())
    first.bus.publish([taken(1)])
    written = first.bus.seal()
    first.bus.written(written)
    first.bus.publish([taken(2)])
    first.kill()
    second = Process(tmp_path)

    position = (
        JournalPosition(written.epoch, 0) if known == "older" else JournalPosition("another", written.number)
    )

    assert second.start(position) == []
    assert second.bus.journal_position.epoch not in (written.epoch, "another")


def test_an_entry_that_was_torn_by_the_kill_was_sent_to_nobody(tmp_path: Path) -> None:
    first = begun(tmp_path)
    written = first.bus.seal()
    first.bus.publish([taken(1)])
    first.bus.publish([taken(2)])
    first.kill()
    (path,) = tmp_path.glob("*.journal")
    path.write_bytes(path.read_bytes()[:-3])

    assert Process(tmp_path).start(written) == [taken(1)]


def test_after_a_restart_of_the_machine_the_numbering_begins_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = begun(tmp_path)
    written = first.bus.seal()
    first.bus.publish([taken(1)])
    first.kill()
    head = tmp_path / "head"
    head.write_bytes(encode(JournalHead(written.epoch, "another start")))
    second = Process(tmp_path)

    assert second.start(written) == []
    assert second.bus.journal_position.epoch != written.epoch


def test_a_second_process_leaves_the_journal_of_the_first_alone(tmp_path: Path) -> None:
    first = begun(tmp_path)
    written = first.bus.seal()
    first.bus.publish([taken(1)])
    second = Process(tmp_path)
    assert second.start(written) == []
    second.bus.publish([taken(9)])
    second.kill()
    first.kill()

    assert Process(tmp_path).start(written) == [taken(1)]


def test_a_folder_that_cannot_be_written_costs_the_journal_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    heard: list[AnyRecord] = []
    bus = LocalBus(heard.extend, LocalJournal(tmp_path / "file" / "journal", dict))

    assert asyncio.run(bus.open(JournalWriter(), JournalPosition("", 0))) == []
    bus.publish([taken(1)])

    assert heard == [taken(1)]


def test_a_full_disk_begins_the_numbering_anew_after_a_kill(tmp_path: Path) -> None:
    first = begun(tmp_path)
    written = first.bus.seal()
    with no_file_beyond(0):
        first.bus.publish([taken(1)])
    first.bus.publish([taken(2)])
    first.kill()
    second = Process(tmp_path)

    assert second.start(written) == []
    assert second.bus.journal_position.epoch != written.epoch


def test_a_full_disk_at_the_end_is_one_sentence(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    first = begun(tmp_path)
    first.bus.written(first.bus.seal())
    with no_file_beyond(0):
        asyncio.run(first.bus.close())

    assert [line.partition(":")[0] for line in caplog.messages] == ["The journal ends as after a kill"]
    assert Process(tmp_path).start(first.bus.journal_position) == []


def test_an_entry_that_fits_in_part_ends_the_journal_though_the_next_would_fit(tmp_path: Path) -> None:
    first = begun(tmp_path)
    written = first.bus.seal()
    first.bus.publish([taken(1)])
    (path,) = tmp_path.glob("*.journal")
    with no_file_beyond(path.stat().st_size + 10):
        first.bus.publish([taken(2)])
    first.bus.publish([taken(3)])
    first.kill()
    second = Process(tmp_path)

    assert second.start(written) == []
    assert second.bus.journal_position.epoch != written.epoch


def test_journal_goes_on_once_the_disk_takes_it_again_and_the_database_has_what_it_lacks(
    tmp_path: Path,
) -> None:
    first = begun(tmp_path)
    first.bus.written(first.bus.seal())
    first.bus.publish([taken(1)])
    with full_disk(first):
        first.bus.publish([taken(2)])
    assert (first.bus.has_hole, first.bus.is_whole) == (True, False)
    first.bus.publish([taken(3)])
    lacks = first.bus.seal()
    first.bus.publish([taken(4)])
    assert (first.bus.has_hole, first.bus.is_whole) == (True, False)
    first.bus.written(lacks)
    assert (first.bus.has_hole, first.bus.is_whole) == (False, True)
    first.bus.publish([taken(5)])
    first.kill()
    second = Process(tmp_path)

    assert second.start(lacks) == [taken(4), taken(5)]
    assert second.bus.journal_position.epoch == lacks.epoch


@pytest.mark.parametrize("after", ["nothing", "a tick"])
def test_kill_before_the_database_has_what_the_journal_lacks_begins_the_numbering_anew(
    tmp_path: Path, after: str
) -> None:
    numbers = {"EURUSD": (1, 0)}
    first = Process(tmp_path, lambda: numbers)
    first.start(JournalPosition("", 0))
    first.bus.publish([taken(1)])
    written = first.bus.seal()
    first.bus.written(written)
    with full_disk(first):
        first.bus.publish([taken(2)])
        numbers["EURUSD"] = (2, 0)
    first.bus.seal()
    if after == "a tick":
        first.bus.publish([taken(3)])
    first.kill()
    second = Process(tmp_path, 1)

    assert second.start(written) == []
    assert second.bus.journal_position.epoch != written.epoch


def test_folder_that_can_be_written_later_has_a_journal_then(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    folder = tmp_path / "file" / "journal"
    first = begun(folder)
    assert first.bus.has_hole
    (tmp_path / "file").unlink()
    written = first.bus.seal()
    first.bus.written(written)
    first.bus.publish([taken(1)])
    first.kill()

    assert Process(folder).start(written) == [taken(1)]


@contextmanager
def full_disk(process: Process) -> Iterator[None]:
    process.bus.seal()
    with no_file_beyond(0):
        yield


@contextmanager
def no_file_beyond(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_how_the_engine_is_doing_is_no_part_of_it(tmp_path: Path) -> None:
    first = begun(tmp_path)
    first.bus.publish([StatusRecord("", b"{}")])

    assert not list(tmp_path.glob("*.journal"))


def test_files_do_not_pile_up(tmp_path: Path) -> None:
    process = begun(tmp_path)
    for seq in range(1, 100):
        process.bus.publish([taken(seq)])
        process.bus.written(process.bus.seal())

    assert not list(tmp_path.glob("*.journal"))


def test_a_new_numbering_is_written_at_once(tmp_path: Path) -> None:
    owner = JournalWriter()
    bus = LocalBus(lambda records: None, LocalJournal(tmp_path, dict))

    asyncio.run(bus.open(owner, JournalPosition("", 0)))
    asyncio.run(bus.close())
    assert owner.flushes == 1

    asyncio.run(bus.open(owner, bus.journal_position))
    asyncio.run(bus.close())
    assert owner.flushes == 1
