"""What streams can send again after a restart: the journal's files that the database holds already."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from core.clock import now_ms
from market.engine.bus import local_bus
from market.engine.bus.journal import KEEP_MS, MAX_FRAMES, RecentRecords, encode, falls_short
from market.engine.bus.journal_folder import JournalHead, boot_id
from market.prices.records import (
    AbsorptionFound,
    CandlesEnded,
    ClosedCandle,
    JournalPosition,
    SeriesBegan,
    TickAccepted,
)

from .journal_processes import Process, begun, taken


def published(process: Process, *seqs: int) -> JournalPosition:
    """Each in a file of its own, all of them in the database."""
    for seq in seqs:
        process.bus.publish([taken(seq)])
        process.bus.written(process.bus.seal())
    return process.bus.journal_position


def past_of(process: Process) -> list[int]:
    return [
        record.seq
        for _, record in process.bus.take_recent().prices["EURUSD"]
        if isinstance(record, TickAccepted)
    ]


def traded(seq: int, flow_seq: int) -> TickAccepted:
    return TickAccepted("EURUSD", 1.1, 1.2, 1_000 * seq, 1.0, seq, flow_seq)


def absorbed(flow_seq: int) -> AbsorptionFound:
    return AbsorptionFound("EURUSD", flow_seq, "bid", 1.1, 1.0, 1.0, 1.0, 1.0, 1_000)


def ended(seq: int) -> CandlesEnded:
    return CandlesEnded("EURUSD", seq, [ClosedCandle("1m", seq, seq, 0, *(1.1,) * 4, 1.0)])


@pytest.mark.parametrize("is_killed", [False, True])
def test_candles_that_were_closed_are_known_after_a_restart(tmp_path: Path, is_killed: bool) -> None:
    numbers = {"EURUSD": (1_000, 0), "EURUSD/1m": (2, 0)}
    first = Process(tmp_path, lambda: numbers)
    first.start(JournalPosition("", 0))
    first.bus.publish([ended(1)])
    first.bus.publish([ended(2)])
    first.bus.written(position := first.bus.seal())
    if is_killed:
        first.bus.publish([ended(3)])
        first.kill()
    else:
        asyncio.run(first.bus.close())
    second = Process(tmp_path, lambda: numbers)
    second.start(position)

    recent = second.bus.take_recent()
    assert [sent.candle.seq for sent in recent.candles["EURUSD/1m"]] == [1, 2, 3][: 2 + is_killed]
    assert recent.numbers["EURUSD/1m"] == (2 + is_killed, 0)


def test_database_that_knows_fewer_candles_than_were_sent_begins_anew(tmp_path: Path) -> None:
    numbers = {"EURUSD/1m": (2, 0)}
    first = Process(tmp_path, lambda: numbers)
    first.start(JournalPosition("", 0))
    first.bus.publish([ended(2)])
    first.bus.written(position := first.bus.seal())
    asyncio.run(first.bus.close())
    second = Process(tmp_path, lambda: {"EURUSD/1m": (1, 0)})
    second.start(position)

    assert second.bus.journal_position.epoch != position.epoch


@pytest.mark.parametrize("is_killed", [False, True])
def test_what_was_sent_is_known_after_two_restarts(tmp_path: Path, is_killed: bool) -> None:
    first = begun(tmp_path)
    written = published(first, 1, 2, 3)
    first.kill() if is_killed else asyncio.run(first.bus.close())
    second = Process(tmp_path)
    assert second.start(written) == []
    assert past_of(second) == [1, 2, 3]
    written = published(second, 4)
    second.kill() if is_killed else asyncio.run(second.bus.close())
    third = Process(tmp_path)

    assert third.start(written) == []
    assert past_of(third) == [1, 2, 3, 4]
    assert third.bus.journal_position == written


def test_what_was_not_written_is_part_of_it(tmp_path: Path) -> None:
    first = begun(tmp_path)
    written = published(first, 1, 2)
    first.bus.publish([taken(3)])
    first.kill()
    second = Process(tmp_path)

    assert second.start(written) == [taken(3)]
    assert past_of(second) == [1, 2, 3]


def test_what_is_published_before_the_streams_begin_is_part_of_it(tmp_path: Path) -> None:
    first = begun(tmp_path)
    written = published(first, 1)
    first.kill()
    second = Process(tmp_path)
    second.start(written)
    second.bus.publish([taken(2)])

    assert past_of(second) == [1, 2]
    second.bus.publish([taken(3)])
    assert past_of(second) == []


def test_it_is_kept_for_as_long_as_streams_send_it_again(tmp_path: Path) -> None:
    first = begun(tmp_path)
    before_ms = now_ms()
    published(first, 1, 2)

    first.journal.forget(2, before_ms + KEEP_MS)
    assert len(list(tmp_path.glob("*.kept"))) == 2
    first.journal.forget(2, now_ms() + KEEP_MS + 1)
    # The newest stays: it says how far the database must be.
    assert [path.name for path in tmp_path.glob("*.kept")] == ["0000000000000002.kept"]


@pytest.mark.parametrize(("name", "most"), [("MOST_KEPT_FILES", 3), ("MOST_KEPT_BYTES", 200)])
def test_the_oldest_goes_where_it_would_be_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, most: int
) -> None:
    monkeypatch.setattr(local_bus, name, most)
    first = begun(tmp_path)
    written = published(first, *range(1, 50))
    first.kill()
    second = Process(tmp_path)
    second.start(written)

    found = past_of(second)

    assert 1 < len(found) <= 3
    assert found[-1] == 49


def test_a_file_that_was_damaged_costs_what_it_held(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    first = begun(tmp_path)
    written = published(first, 1, 2, 3)
    first.kill()
    damaged = sorted(tmp_path.glob("*.kept"))[1]
    data = bytearray(damaged.read_bytes())
    data[-1] ^= 1
    damaged.write_bytes(data)
    second = Process(tmp_path)
    second.start(written)

    assert past_of(second) == [1, 3]
    assert [record.getMessage() for record in caplog.records] == [
        f"{damaged} is damaged: what it held cannot be sent again"
    ]


def test_an_older_state_of_the_database_begins_anew(tmp_path: Path) -> None:
    first = begun(tmp_path)
    older = published(first, 1, 2)
    published(first, 3)
    first.kill()
    second = Process(tmp_path)
    second.start(older)

    assert second.bus.journal_position.epoch != older.epoch
    assert past_of(second) == []
    assert list(tmp_path.glob("*.kept")) == []


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_database_that_would_give_numbers_again_begins_anew(tmp_path: Path, is_killed: bool) -> None:
    first = begun(tmp_path, seq=3)
    written = published(first, 1, 2, 3)
    first.kill() if is_killed else asyncio.run(first.bus.close())
    second = Process(tmp_path, seq=2)
    second.start(written)

    assert second.bus.journal_position.epoch != written.epoch
    assert past_of(second) == []


def test_numbers_that_were_given_long_ago_count_too(tmp_path: Path) -> None:
    first = begun(tmp_path, seq=9)
    written = first.bus.seal()
    asyncio.run(first.bus.close())

    for seq, goes_on in ((9, True), (8, False)):
        process = Process(tmp_path, seq)
        process.start(written)
        assert (process.bus.journal_position.epoch == written.epoch) is goes_on
        process.kill()
        head = JournalHead(written.epoch, boot_id(), written.number, {"EURUSD": (9, 0)})
        (tmp_path / "head").write_bytes(encode(head))


def test_a_first_entry_that_was_torn_spoils_nothing(tmp_path: Path) -> None:
    first = begun(tmp_path)
    written = published(first, 1)
    first.bus.publish([taken(2)])
    first.kill()
    (path,) = tmp_path.glob("*.journal")
    path.write_bytes(path.read_bytes()[:-3])
    second = Process(tmp_path)
    assert second.start(written) == []
    second.bus.publish([taken(2)])
    second.kill()
    third = Process(tmp_path)

    assert third.start(written) == [taken(2)]
    assert past_of(third) == [1, 2]


def test_only_so_many_of_a_symbol_are_remembered() -> None:
    past = RecentRecords()
    past.add(1, [taken(seq) for seq in range(1, MAX_FRAMES + 11)])

    assert past.prices["EURUSD"][0].record == taken(11)
    assert len(past.prices["EURUSD"]) == MAX_FRAMES


def test_order_flow_has_its_ticks_and_its_absorptions() -> None:
    past = RecentRecords()
    past.add(1, [taken(1), traded(2, 1), absorbed(2), taken(3)])

    assert [sent.record for sent in past.flow["EURUSD"]] == [traded(2, 1), absorbed(2)]
    assert past.numbers == {"EURUSD": (3, 2)}


def test_nothing_of_a_series_that_ended_is_sent_again() -> None:
    past = RecentRecords()
    past.add(1, [traded(1, 1), absorbed(2), SeriesBegan("EURUSD", False, 1_500, 1), traded(2, 3)])

    assert [sent.record for sent in past.prices["EURUSD"]] == [traded(2, 3)]
    assert [sent.record for sent in past.flow["EURUSD"]] == [traded(2, 3)]
    assert past.numbers == {"EURUSD": (2, 3)}


@pytest.mark.parametrize(
    ("known", "is_short"), [((3, 2), False), ((4, 9), False), ((2, 2), True), ((3, 1), True)]
)
def test_numbers_fall_short_where_one_would_be_given_again(known: tuple[int, int], is_short: bool) -> None:
    assert falls_short({"EURUSD": known}, {"EURUSD": (3, 2)}) is is_short
    assert falls_short({}, {"EURUSD": (3, 2)})
