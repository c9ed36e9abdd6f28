"""The files of the last day's ticks: what is written, what is read back, and what a disk may do to them."""

from __future__ import annotations

import errno
import logging
import os
import shutil
from collections import namedtuple
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from time_machine import travel

from core.clock import now_ms
from market.engine.listeners import EngineStart
from market.engine.recent_ticks import (
    HOUR_MS,
    MOST_FILE_BYTES,
    MOST_WAITING,
    RECORD,
    NotHere,
    TickRecorder,
    TickWriter,
    files_in,
    folder_of,
    recorder,
)
from market.engine.tick_pages import TickPlace, unpack_ticks
from market.prices.records import AnyRecord, EmptyMinute
from market.runtime import market
from tests.market.kept_ticks import MANY_BYTES, NOON_MS, batch, keep, page, tick, walk
from tests.patience import wait_until


def paths(root: Path, symbol: str = "EURUSD") -> list[Path]:
    return [file.path for file in files_in(folder_of(root, symbol))]


def test_engine_of_a_process_is_recorded() -> None:
    assert recorder in market.engine_listeners


def test_tick_is_read_back_as_it_was_written_and_nothing_else_is(tmp_path: Path) -> None:
    odd = tick("BTC.X_1-2", 7, NOON_MS + 7)
    keep("e", ("e", [odd, EmptyMinute("BTC.X_1-2", NOON_MS), tick("EURUSD", 1)]), root=tmp_path)
    (found,) = unpack_ticks(page(tmp_path, "e", "BTC.X_1-2").bodies)
    assert found == (odd.seq, odd.time_ms, odd.bid, odd.ask, odd.volume)


def test_folder_of_another_epoch_is_not_here(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(NotHere):
            page(tmp_path, "e")
        keep("other", batch("other", "EURUSD", [1]), root=tmp_path)
    assert page(tmp_path, "other").bodies


# Runs of an engine: whether the epoch is a new one, how many ticks are new, and how many are repeated.
@given(
    runs=st.lists(st.tuples(st.booleans(), st.integers(1, 30), st.integers(0, 9)), min_size=1, max_size=5),
    limit=st.integers(1, 12),
    shared=st.integers(1, 5),
)
def test_walk_loses_and_repeats_none_over_starts_epochs_and_shared_milliseconds(
    tmp_path_factory: pytest.TempPathFactory, runs: list[tuple[bool, int, int]], limit: int, shared: int
) -> None:
    root, epoch, head = tmp_path_factory.mktemp("ticks"), 0, 0
    expected: list[tuple[str, int]] = []
    for is_new, number, repeated in runs:
        epoch += is_new
        name = f"e{epoch}"
        begins = head + 1 if is_new else max(1, head + 1 - repeated)
        expected = [each for each in expected if each[0] != name or each[1] < begins]
        seqs = range(begins, max(head, begins) + number)
        expected += [(name, seq) for seq in seqs]
        keep(name, (name, [tick("EURUSD", seq, NOON_MS + seq // shared) for seq in seqs]), root=root)
        head = seqs[-1]
    pages = [*walk(root, f"e{epoch}", limit)]
    assert [(name, seq) for name, seqs in pages for seq in seqs] == expected
    assert all(0 < len(seqs) <= limit for _, seqs in pages)


def test_page_ends_where_the_epoch_changes_and_says_that_more_follows(tmp_path: Path) -> None:
    keep("a", batch("a", "EURUSD", [1, 2]), batch("b", "EURUSD", [2, 3]), root=tmp_path)
    assert [*walk(tmp_path, "a")] == [("a", [1, 2]), ("b", [2, 3])]


def test_walk_whose_epoch_was_removed_goes_on_after_its_time(tmp_path: Path) -> None:
    keep("a", batch("a", "EURUSD", [1, 2]), batch("b", "EURUSD", [3, 4]), root=tmp_path)
    found = page(tmp_path, "a", limit=2)
    paths(tmp_path)[0].unlink()
    (last,) = [each for each in unpack_ticks(found.bodies) if each.seq == 2]
    after = page(tmp_path, "a", after=TickPlace("a", last.seq, last.time_ms))
    assert [each.seq for each in unpack_ticks(after.bodies)] == [3, 4]


def test_sources_are_told_apart_in_the_order_of_their_ticks(tmp_path: Path) -> None:
    records = [
        tick("EURUSD", seq, NOON_MS + seq, "hidden" if seq in (2, 3) else "a:b/c") for seq in range(1, 6)
    ]
    keep("e", ("e", [*records]), root=tmp_path)
    assert [*walk(tmp_path, "e")] == [("e", [1, 4, 5])]


# What a kill, a power cut or a bad disk leaves.
@pytest.mark.parametrize(
    ("damage", "left"),
    [
        (lambda data: data[:-1], [1, 2, 4]),
        (lambda data: data[: -RECORD.size - 5], [1, 4]),
        (lambda data: data + bytes(10 * RECORD.size + 3), [1, 2, 3, 4]),
        (lambda data: data[: RECORD.size + 20] + b"\xff" + data[RECORD.size + 21 :], [1, 3, 4]),
        (lambda data: b"", [4]),
    ],
    ids=["torn", "torn and short", "zeros", "a flipped byte", "empty"],
)
def test_what_is_torn_or_damaged_is_left_out_and_what_follows_is_not(
    tmp_path: Path, damage: Any, left: list[int]
) -> None:
    keep("e", batch("e", "EURUSD", [1, 2, 3]), root=tmp_path)
    (path,) = paths(tmp_path)
    path.write_bytes(damage(path.read_bytes()))
    keep("e", batch("e", "EURUSD", [4]), root=tmp_path)
    for limit in (1, 1_000):
        assert [seq for _, seqs in walk(tmp_path, "e", limit) for seq in seqs] == left


# How long, how much, and what happens when there is no room.
def test_file_spans_an_hour_and_goes_when_its_last_tick_is_too_old(tmp_path: Path) -> None:
    writer = TickWriter(tmp_path, 24, MANY_BYTES)
    for hour in range(26):
        with travel((NOON_MS + hour * HOUR_MS) / 1_000, tick=False):
            writer.write("e", [batch("e", "EURUSD", [hour])])
    with travel((NOON_MS + 25 * HOUR_MS) / 1_000, tick=False):
        writer.write("e", [])
        assert [seqs for _, seqs in walk(tmp_path, "e")] == [[*range(26)]]
    with travel((NOON_MS + 25 * HOUR_MS + 10) / 1_000, tick=False):
        writer.write("e", [])
    assert [seqs for _, seqs in walk(tmp_path, "e")] == [[*range(1, 26)]]


def test_oldest_of_all_symbols_go_first_when_they_take_too_much(tmp_path: Path) -> None:
    keep("e", batch("e", "OLD", range(1, 101)), batch("e", "EURUSD", range(1, 101)), root=tmp_path)
    writer = TickWriter(tmp_path, 24, 250 * RECORD.size)
    writer.write("e", [batch("e", "EURUSD", range(101, 201))])
    assert [len(paths(tmp_path, symbol)) for symbol in ("OLD", "EURUSD")] == [1, 2]
    writer.write("e", [batch("e", "NEW", [1])])
    assert [len(paths(tmp_path, symbol)) for symbol in ("OLD", "EURUSD")] == [0, 2]
    assert writer.bytes == 201 * RECORD.size == sum(path.stat().st_size for path in tmp_path.rglob("*.ticks"))


def test_file_that_is_long_is_followed_by_another(tmp_path: Path) -> None:
    writer, number = TickWriter(tmp_path, 24, MANY_BYTES), MOST_FILE_BYTES // RECORD.size + 1
    for seqs in (range(1, number + 1), [number + 1], [number + 2]):
        writer.write("e", [batch("e", "EURUSD", seqs)])
    assert [path.stat().st_size // RECORD.size for path in paths(tmp_path)] == [number, 2]


Usage = namedtuple("Usage", ["total", "used", "free"])


def test_full_disk_stops_this_first_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    writer = keep("e", batch("e", "EURUSD", [1]), root=tmp_path)
    # Others still have room on it.
    with monkeypatch.context() as patch, caplog.at_level(logging.ERROR):
        patch.setattr(shutil, "disk_usage", lambda path: Usage(10**12, 10**12 - 10**8, 10**8))
        writer.write("e", [batch("e", "EURUSD", [2, 3])])
    assert (writer.fault, writer.lost) == (os.strerror(errno.ENOSPC), 2)
    assert "prices go on" in caplog.text
    writer.write("e", [batch("e", "EURUSD", [4])])
    assert (writer.fault, writer.lost, writer.written) == ("", 2, 2)
    assert [*walk(tmp_path, "e")] == [("e", [1, 4])]


def test_write_that_the_disk_cuts_off_is_not_appended_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = keep("e", batch("e", "EURUSD", [1]), root=tmp_path)
    write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda file, data: write(file, data[: RECORD.size + 9]))
        writer.write("e", [batch("e", "EURUSD", [2, 3])])
    assert writer.fault
    writer.write("e", [batch("e", "EURUSD", [4])])
    assert [*walk(tmp_path, "e")] == [("e", [1, 2, 4])]


def test_folder_that_was_removed_is_made_again(tmp_path: Path) -> None:
    root = tmp_path / "recent-ticks"
    writer = keep("e", batch("e", "EURUSD", [1]), root=root)
    shutil.rmtree(root)
    for seq in (2, 3):
        writer.write("e", [batch("e", "EURUSD", [seq])])
    assert [*walk(root, "e")] == [("e", [3])]


# The engine's listener.
def start(tail: list[Any] | None = None) -> EngineStart:
    async def nothing() -> None: ...

    return EngineStart(lambda: "e", lambda: None, tail or [], lambda symbol: None, nothing)  # type: ignore[arg-type,return-value]


async def test_what_was_heard_is_written_when_the_engine_ends_and_its_tail_when_it_begins(
    tmp_path: Path, settings: Any
) -> None:
    settings.VAR_DIR, root = tmp_path, tmp_path / "recent-ticks"
    recording = TickRecorder()
    await recording.begin(start([tick("EURUSD", 1)]))
    recording.hear([tick("EURUSD", 2)])
    await recording.end()
    assert [*walk(root, "e")] == [("e", [1, 2])]
    await recording.begin(start([tick("EURUSD", 2)]))
    recording.hear([tick("EURUSD", 3)])
    wait_until(lambda: [*walk(root, "e")] == [("e", [1, 2, 3])])
    await recording.end()


async def test_disk_that_hangs_holds_up_nothing_and_costs_bounded_memory(
    tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.VAR_DIR = tmp_path
    monkeypatch.setattr("market.engine.recent_ticks.PATIENCE_S", 0.0)
    stopped = Event()
    monkeypatch.setattr(TickWriter, "write", lambda writer, epoch, batches: stopped.wait())
    recording = TickRecorder()
    await recording.begin(start())
    wait_until(lambda: recording.fault == "the disk hangs")
    many: list[AnyRecord] = [tick("EURUSD", 1)] * 1_000
    for _ in range(MOST_WAITING // 1_000 + 10):
        recording.hear(many)
    assert recording.lost == 9_000
    stopped.set()
    await recording.end()


def test_time_of_a_file_never_goes_back_where_a_clock_is_set(tmp_path: Path) -> None:
    writer = keep("e", batch("e", "EURUSD", [1]), root=tmp_path)
    with travel((now_ms() - 2 * HOUR_MS) / 1_000, tick=False):
        writer.write("e", [batch("e", "EURUSD", [2])])
    assert [*walk(tmp_path, "e")] == [("e", [1, 2])]
