"""The journal of an engine within its process: what was published is there after a kill -9, for the engine
that follows and for streams that send it again."""

from __future__ import annotations

import asyncio
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.clock import now_ms
from market.engine.bus import local_bus
from market.engine.bus.journal import KEEP_MS, MAX_FRAMES, RecentRecords, StreamNumbers, encode, falls_short
from market.engine.bus.local_bus import JournalHead, LocalBus, LocalJournal, boot_id
from market.prices.records import (
    AbsorptionFound,
    AnyRecord,
    CandlesEnded,
    ClosedCandle,
    JournalPosition,
    SeriesBegan,
    StatusRecord,
    TickAccepted,
)

from .buses import NOWHERE, JournalWriter, seqs_of, taken

STATUS = StatusRecord("", b"{}")
killed = count(1)


class Process:
    """One of several over one folder, one after the other, each of which may be killed."""

    started: list[Process] = []

    def __init__(self, folder: Path, seq: int | Callable[[], StreamNumbers] = 1_000) -> None:
        """`seq` is the last that the database holds, or what the engine knows of."""
        self.folder = folder
        self.journal = LocalJournal(folder, seq if callable(seq) else lambda: {"EURUSD": (seq, 0)})
        self.started.append(self)
        self.bus = LocalBus(lambda records: None, self.journal)

    @property
    def epoch(self) -> str:
        return self.bus.journal_position.epoch

    def start(self, position: JournalPosition = NOWHERE) -> list[AnyRecord]:
        return asyncio.run(self.bus.open(JournalWriter(), position))

    def publish(self, *seqs: int) -> None:
        for seq in seqs:
            self.bus.publish([taken(seq)])

    def write(self, *seqs: int) -> JournalPosition:
        """Each in a file of its own, all of them in the database with what was published before."""
        for seq in seqs:
            self.publish(seq)
            self.bus.written(self.bus.seal())
        self.bus.written(position := self.bus.seal())
        return position

    def past(self) -> list[int]:
        return seqs_of([record for _, record in self.bus.take_recent().prices["EURUSD"]])

    def end(self, *, is_killed: bool = True) -> None:
        """Killed, what it wrote stays, as a copy without its lock; nothing that it still does gets there."""
        if is_killed:
            former = self.folder.rename(self.folder.with_name(f"killed-{next(killed)}"))
            shutil.copytree(former, self.folder)
        else:
            asyncio.run(self.bus.close())


@pytest.fixture(autouse=True)
def _closed_journals() -> Iterator[None]:
    yield
    close_all()


def close_all() -> None:
    while Process.started:
        asyncio.run(Process.started.pop().bus.close())


def begun(folder: Path, seq: int | Callable[[], StreamNumbers] = 1_000) -> Process:
    process = Process(folder, seq)
    assert process.start() == []
    return process


@contextmanager
def no_file_beyond(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def cut(folder: Path, bytes_: int) -> None:
    """The newest entry is torn by the kill."""
    path = sorted(folder.glob("*.journal"))[-1]
    path.write_bytes(path.read_bytes()[:-bytes_])


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from(["publish", "publish", "status", "seal", "write", "tear", "kill", "end"])),
    st.booleans(),
)
def test_nothing_is_lost_and_nothing_comes_twice_whatever_happens(lived: list[str], is_killed: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "journal"
        process, published, written = begun(folder), 0, 0
        epoch, position = process.epoch, process.write()
        for step in [*lived, "kill" if is_killed else "end"]:
            if step == "publish":
                published += 1
                process.publish(published)
            elif step == "status":
                process.bus.publish([STATUS])
            elif step == "seal":
                # The database does not take it.
                process.bus.seal()
            elif step == "write":
                position, written = process.write(), published
            else:
                process.end(is_killed=step != "end")
                if step == "tear" and list(folder.glob("*.journal")):
                    # It was sent to nobody.
                    cut(folder, 3)
                    published -= 1
                process = Process(folder)
                assert seqs_of(process.start(position)) == list(range(written + 1, published + 1))
                assert process.past() == list(range(1, published + 1))
                assert process.epoch == epoch
        close_all()


def older(first: Process) -> JournalPosition:
    position = first.write(1, 2)
    first.write(3)
    return position


def much_older(first: Process) -> JournalPosition:
    position = first.write(1)
    first.write(2, 3)
    long_after_ms = time.time_ns() // 1_000_000 + 2 * KEEP_MS
    first.journal.forget(first.bus.journal_position.number, long_after_ms)
    return position


def of_another_epoch(first: Process) -> JournalPosition:
    return JournalPosition("another", first.write(1, 2).number)


def before_a_restart_of_the_machine(first: Process) -> JournalPosition:
    position = first.write(1)
    first.publish(2)
    first.folder.joinpath("head").write_bytes(encode(JournalHead(position.epoch, "another start")))
    return position


def before_a_full_disk(first: Process) -> JournalPosition:
    position = first.write(1)
    with no_file_beyond(0):
        first.publish(2)
    first.publish(3)
    return position


def before_an_entry_that_fits_in_part(first: Process) -> JournalPosition:
    """Though the next would fit."""
    position = first.write()
    first.publish(1)
    (path,) = first.folder.glob("*.journal")
    with no_file_beyond(path.stat().st_size + 10):
        first.publish(2)
    first.publish(3)
    return position


def before_what_the_journal_lacks(first: Process) -> JournalPosition:
    position = first.write(1)
    with no_file_beyond(0):
        first.publish(2)
    first.bus.seal()
    first.publish(3)
    return position


@pytest.mark.parametrize(
    "fault",
    [
        older,
        much_older,
        of_another_epoch,
        before_a_restart_of_the_machine,
        before_a_full_disk,
        before_an_entry_that_fits_in_part,
        before_what_the_journal_lacks,
    ],
)
def test_database_that_does_not_fit_begins_the_numbering_anew(
    tmp_path: Path, fault: Callable[[Process], JournalPosition]
) -> None:
    first = begun(tmp_path)
    position = fault(first)
    first.end()
    second = Process(tmp_path)

    assert second.start(position) == []
    assert second.epoch not in (first.epoch, position.epoch)
    assert second.past() == []
    assert list(tmp_path.glob("*.kept")) == []


@pytest.mark.parametrize("is_killed", [False, True])
@pytest.mark.parametrize(
    ("known", "goes_on"),
    [
        ({"EURUSD": (3, 0), "EURUSD/1m": (2, 0)}, True),
        ({"EURUSD": (2, 0), "EURUSD/1m": (2, 0)}, False),
        ({"EURUSD": (3, 0), "EURUSD/1m": (1, 0)}, False),
    ],
)
def test_database_that_would_give_numbers_again_begins_anew(
    tmp_path: Path, is_killed: bool, known: StreamNumbers, goes_on: bool
) -> None:
    first = begun(tmp_path, lambda: {"EURUSD": (3, 0), "EURUSD/1m": (2, 0)})
    first.bus.publish([ended(1), ended(2)])
    position = first.write(1, 2, 3)
    if is_killed:
        first.bus.publish([ended(3)])
    first.end(is_killed=is_killed)
    second = Process(tmp_path, lambda: known)
    second.start(position)
    recent = second.bus.take_recent()

    assert (second.epoch == position.epoch) is goes_on
    candles = [sent.candle.seq for sent in recent.candles["EURUSD/1m"]]
    assert candles == ([1, 2, 3][: 2 + is_killed] if goes_on else [])
    assert recent.numbers.get("EURUSD/1m") == ((2 + is_killed, 0) if goes_on else None)


def test_numbers_that_were_given_long_ago_count_too(tmp_path: Path) -> None:
    first = begun(tmp_path, seq=9)
    written = first.bus.seal()
    first.end(is_killed=False)

    for seq, goes_on in ((9, True), (8, False)):
        process = Process(tmp_path, seq)
        process.start(written)
        assert (process.epoch == written.epoch) is goes_on
        process.end()
        head = JournalHead(written.epoch, boot_id(), written.number, {"EURUSD": (9, 0)})
        (tmp_path / "head").write_bytes(encode(head))


def test_a_second_process_leaves_the_journal_of_the_first_alone(tmp_path: Path) -> None:
    first = begun(tmp_path)
    written = first.bus.seal()
    first.publish(1)
    second = Process(tmp_path)
    assert second.start(written) == []
    second.publish(9)
    second.end()
    first.end()

    assert seqs_of(Process(tmp_path).start(written)) == [1]


def test_folder_that_cannot_be_written_costs_the_journal_until_it_can(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    heard: list[AnyRecord] = []
    first = Process(tmp_path / "file" / "journal")
    first.bus = LocalBus(heard.extend, first.journal)
    assert first.start() == []
    first.publish(1)
    assert heard == [taken(1)]
    assert first.bus.has_hole
    (tmp_path / "file").unlink()
    written = first.write()
    first.publish(2)
    first.end()

    assert seqs_of(Process(first.folder).start(written)) == [2]


def test_a_full_disk_at_the_end_is_as_a_kill(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    first = begun(tmp_path)
    first.write()
    with no_file_beyond(0):
        first.end(is_killed=False)

    assert len(caplog.messages) == 1
    assert Process(tmp_path).start(first.bus.journal_position) == []


def test_journal_goes_on_once_the_disk_takes_it_again_and_the_database_has_what_it_lacks(
    tmp_path: Path,
) -> None:
    first = begun(tmp_path)
    first.write()
    first.publish(1)
    first.bus.seal()
    with no_file_beyond(0):
        first.publish(2)
    assert (first.bus.has_hole, first.bus.is_whole) == (True, False)
    first.publish(3)
    lacks = first.bus.seal()
    first.publish(4)
    assert (first.bus.has_hole, first.bus.is_whole) == (True, False)
    first.bus.written(lacks)
    assert (first.bus.has_hole, first.bus.is_whole) == (False, True)
    first.publish(5)
    first.end()
    second = Process(tmp_path)

    assert seqs_of(second.start(lacks)) == [4, 5]
    assert second.epoch == lacks.epoch


def test_numbers_that_the_hole_took_along_are_not_given_again(tmp_path: Path) -> None:
    numbers = {"EURUSD": (1, 0)}
    first = begun(tmp_path, lambda: numbers)
    written = first.write(1)
    with no_file_beyond(0):
        first.publish(2)
        numbers["EURUSD"] = (2, 0)
    first.bus.seal()
    first.end()
    second = Process(tmp_path, 1)

    assert second.start(written) == []
    assert second.epoch != written.epoch


def test_files_do_not_pile_up_and_status_makes_none(tmp_path: Path) -> None:
    first = begun(tmp_path)
    before_ms = now_ms()
    first.write(1, 2)
    first.bus.publish([STATUS])

    assert not list(tmp_path.glob("*.journal"))
    first.journal.forget(2, before_ms + KEEP_MS)
    assert len(list(tmp_path.glob("*.kept"))) == 2
    first.journal.forget(2, now_ms() + KEEP_MS + 1)
    # The newest stays: it says how far the database must be.
    assert [path.name for path in tmp_path.glob("*.kept")] == ["0000000000000002.kept"]


@pytest.mark.parametrize(("name", "most"), [("MOST_KEPT_FILES", 3), ("MOST_KEPT_BYTES", 250)])
def test_the_oldest_goes_where_it_would_be_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, most: int
) -> None:
    monkeypatch.setattr(local_bus, name, most)
    first = begun(tmp_path)
    written = first.write(*range(1, 50))
    first.end()
    second = Process(tmp_path)
    second.start(written)

    found = second.past()

    assert 1 < len(found) <= 3
    assert found[-1] == 49


def test_what_is_published_before_the_streams_begin_is_sent_again_too(tmp_path: Path) -> None:
    first = begun(tmp_path)
    written = first.write(1)
    first.end()
    second = Process(tmp_path)
    second.start(written)
    second.publish(2)

    assert second.past() == [1, 2]
    second.publish(3)
    assert second.past() == []


def test_a_file_that_was_damaged_costs_what_it_held(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    first = begun(tmp_path)
    written = first.write(1, 2, 3)
    first.end()
    damaged = sorted(tmp_path.glob("*.kept"))[1]
    data = bytearray(damaged.read_bytes())
    data[-1] ^= 1
    damaged.write_bytes(data)
    second = Process(tmp_path)
    second.start(written)

    assert second.past() == [1, 3]
    assert len(caplog.records) == 1


def test_a_new_numbering_is_written_at_once(tmp_path: Path) -> None:
    owner, position = JournalWriter(), NOWHERE
    bus = LocalBus(lambda records: None, LocalJournal(tmp_path, dict))
    for _ in range(2):
        asyncio.run(bus.open(owner, position))
        asyncio.run(bus.close())
        position = bus.journal_position
        assert owner.flushes == 1


def traded(seq: int, flow_seq: int) -> TickAccepted:
    return TickAccepted("EURUSD", 1.1, 1.2, 1_000 * seq, 1.0, seq, flow_seq)


def absorbed(flow_seq: int) -> AbsorptionFound:
    return AbsorptionFound("EURUSD", flow_seq, "bid", 1.1, 1.0, 1.0, 1.0, 1.0, 1_000)


def ended(seq: int) -> CandlesEnded:
    return CandlesEnded("EURUSD", seq, [ClosedCandle("1m", seq, seq, 0, *(1.1,) * 4, 1.0)])


def test_recent_records_are_so_many_of_a_symbol_and_of_its_last_series() -> None:
    past = RecentRecords()
    past.add(1, [taken(seq) for seq in range(1, MAX_FRAMES + 11)])
    assert past.prices["EURUSD"][0].record == taken(11)
    assert len(past.prices["EURUSD"]) == MAX_FRAMES

    past.add(1, [SeriesBegan("EURUSD", False, 1_500, 1), taken(1), traded(2, 1), absorbed(2), taken(3)])
    assert [sent.record for sent in past.prices["EURUSD"]] == [taken(1), traded(2, 1), taken(3)]
    assert [sent.record for sent in past.flow["EURUSD"]] == [traded(2, 1), absorbed(2)]
    assert past.numbers == {"EURUSD": (3, 2)}


@pytest.mark.parametrize(
    ("known", "is_short"),
    [
        ({"EURUSD": (3, 2)}, False),
        ({"EURUSD": (4, 9)}, False),
        ({"EURUSD": (2, 2)}, True),
        ({"EURUSD": (3, 1)}, True),
        ({}, True),
    ],
)
def test_numbers_fall_short_where_one_would_be_given_again(known: StreamNumbers, is_short: bool) -> None:
    assert falls_short(known, {"EURUSD": (3, 2)}) is is_short
