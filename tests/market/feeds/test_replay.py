"""Files played as a feed, over a clock that only sleeping moves."""

from __future__ import annotations

import asyncio
import gzip
import lzma
import threading
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from struct import pack

import pytest

from market.engine.feeds import replay
from market.engine.feeds.replay import BLOCK, ReplayFeed
from market.engine.files.format import FileBatch, FilePosition, encode
from market.engine.files.tick_file import START, TickFile
from market.prices.records import Tick
from tests.market.ticking import NOON_MS, make_facts, ms
from tests.patience import PATIENCE_S

from .receivers import RecordingReceiver

# Gaps of 0.4 s, 0 s, 10 s and, as the source was late, -0.5 s.
STAMPS = [ms("2012-02-01T05:00:03") + 660 + later for later in (0, 400, 400, 10_400, 9_900)]


class SlowClock:
    """Stands still but for those who sleep."""

    def __init__(self) -> None:
        self.ms = float(NOON_MS)

    def __call__(self) -> int:
        return int(self.ms)

    async def sleep(self, seconds: float) -> None:
        self.ms += seconds * 1000


class TimingReceiver(RecordingReceiver):
    """Notes when each tick came."""

    def __init__(self, clock: SlowClock) -> None:
        super().__init__()
        self.clock = clock
        self.came_ms: list[int] = []
        self.longest_silence_ms = 0
        self._heard_ms = clock()

    def take(self, ticks: list[Tick]) -> None:
        self.longest_silence_ms = max(self.longest_silence_ms, self.clock() - self._heard_ms)
        self._heard_ms = self.clock()
        self.came_ms += [self.clock()] * len(ticks)
        super().take(ticks)


@pytest.fixture
def clock() -> SlowClock:
    return SlowClock()


def quotes(stamps: list[int]) -> str:
    return "timestamp,bid,ask\n" + "".join(f"{at_ms},1.08,1.0802\n" for at_ms in stamps)


async def play(directory: Path, clock: SlowClock, speed: float = 0.0, *symbols: str) -> TimingReceiver:
    facts = [make_facts(symbol) for symbol in symbols or ("EURUSD",)]
    receiver = TimingReceiver(clock)
    await ReplayFeed(directory, facts, speed, clock, clock.sleep).run(receiver)
    return receiver


@pytest.mark.parametrize(("speed", "length_ms"), [(1.0, 10_400), (20.0, 520), (0.5, 20_800)])
async def test_ticks_come_as_of_now_with_their_gaps_divided_by_the_speed(
    tmp_path: Path, clock: SlowClock, speed: float, length_ms: int
) -> None:
    (tmp_path / "EURUSD.csv").write_text(quotes(STAMPS))
    receiver = await play(tmp_path, clock, speed)
    times = [tick.time_ms - NOON_MS for tick in receiver.ticks]
    assert times == [round((at_ms - STAMPS[0]) / speed) for at_ms in STAMPS]
    assert times[3] == length_ms
    late = [came - tick.time_ms for came, tick in zip(receiver.came_ms, receiver.ticks, strict=True)]
    assert min(late) >= 0
    # The last one was late at its source.
    assert max(late[:-1]) <= 50
    # A quiet market is known to be alive.
    assert receiver.longest_silence_ms <= 50


async def test_at_once_all_ticks_come_with_the_times_they_had_and_the_end_is_told(
    tmp_path: Path, clock: SlowClock
) -> None:
    (tmp_path / "EURUSD.csv").write_text(quotes(STAMPS) + "oops\n")
    receiver = await play(tmp_path, clock)
    assert [tick.time_ms for tick in receiver.ticks] == STAMPS
    assert clock() == NOON_MS
    assert (receiver.refused, receiver.losses) == ({"malformed": 1}, ["the replay has ended"])


async def test_symbols_are_played_together_in_the_order_of_time_and_files_by_name(
    tmp_path: Path, clock: SlowClock
) -> None:
    (tmp_path / "EURUSD.2012-02-02.csv").write_text(quotes([STAMPS[3]]))
    (tmp_path / "EURUSD.2012-02-01.csv").write_text(quotes([STAMPS[0]]))
    (tmp_path / "GBPUSD.csv").write_text(quotes([STAMPS[1]]))
    receiver = await play(tmp_path, clock, 0.0, "EURUSD", "GBPUSD")
    assert [(tick.symbol, tick.time_ms) for tick in receiver.ticks] == [
        *(("EURUSD", STAMPS[0]), ("GBPUSD", STAMPS[1]), ("EURUSD", STAMPS[3]))
    ]


async def test_one_recording_serves_all_its_symbols(tmp_path: Path, clock: SlowClock) -> None:
    ticks = [Tick(symbol, 1.08, 1.0802, STAMPS[0]) for symbol in ("EURUSD", "GBPUSD", "USDJPY")]
    (tmp_path / "recording-1.jsonl").write_bytes(encode(ticks))
    assert (await play(tmp_path, clock, 0.0, "EURUSD", "USDJPY")).ticks == [ticks[0], ticks[2]]


def formats() -> Iterator[tuple[str, bytes]]:
    at_ms, second = STAMPS[0], "20120201 000003660"
    hour_ms = at_ms - at_ms % 3_600_000
    hour = f'{{"timestamp":{hour_ms},"multiplier":1e-5,"ask":1.0802,"bid":1.08'
    records = lzma.compress(pack(">IIIff", at_ms - hour_ms, 108020, 108000, 1, 1), format=lzma.FORMAT_ALONE)
    yield "EURUSD.csv", quotes([at_ms]).encode()
    yield "EURUSD.csv.gz", gzip.compress(quotes([at_ms]).encode())
    yield "EURUSD/DAT_ASCII_EURUSD_T_201202.csv", f"{second},1.08,1.0802,0\n".encode()
    yield "EURUSD/EURUSD-aggTrades-2012-02.csv", f"1,1.08,1.0,1,1,{at_ms},True,True\n".encode()
    yield "EURUSD.json", f'{hour},"times":[{at_ms - hour_ms}],"asks":[0],"bids":[0]}}'.encode()
    yield "EURUSD.jsonl", encode([Tick("EURUSD", 1.08, 1.0802, at_ms)])
    yield "EURUSD/2012/01/01/05h_ticks.bi5", records


@pytest.mark.parametrize(("name", "content"), list(formats()), ids=[name for name, _ in formats()])
async def test_every_format_is_played(tmp_path: Path, clock: SlowClock, name: str, content: bytes) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_bytes(content)
    (tick,) = (await play(tmp_path, clock)).ticks
    assert (tick.bid, tick.time_ms) == (1.08, STAMPS[0])


@pytest.mark.parametrize("directory", ["", "nowhere"])
async def test_missing_file_is_told_with_the_way_out(
    tmp_path: Path, clock: SlowClock, directory: str
) -> None:
    where = tmp_path / directory
    assert (await play(where, clock)).losses == [
        f"there is no {where}/EURUSD.* to replay: put a file of ticks there, or set REPLAY_DIR"
    ]


async def test_symbol_without_a_file_or_of_an_unknown_format_is_told_and_keeps_no_other(
    tmp_path: Path, clock: SlowClock
) -> None:
    (tmp_path / "EURUSD.csv").write_text(quotes(STAMPS[:1]))
    receiver = await play(tmp_path, clock, 0.0, "GBPUSD", "EURUSD")
    assert len(receiver.ticks) == 1
    assert "GBPUSD" in receiver.losses[0]
    for content, complaint in (
        ("date,price\n2026-11-18,1.1\n", "begins like none of the formats"),
        ("20120201 000100;1.3;1.3;1.3;1.3;0\n", "holds bars, which cannot be played"),
    ):
        (tmp_path / "EURUSD.csv").write_text(content)
        (why,) = (await play(tmp_path, clock)).losses
        assert complaint in why


def big_recording(directory: Path) -> int:
    """Of many ticks of one symbol, before the first of another; returns its size."""
    path, tick = directory / "recording-1.jsonl", Tick("GBPUSD", 1.08, 1.0802, STAMPS[0])
    path.write_bytes(encode([tick]) * 120_000 + encode([Tick("EURUSD", 1.08, 1.0802, STAMPS[1])]))
    return path.stat().st_size


async def test_loop_answers_others_while_a_big_recording_is_searched(
    tmp_path: Path, clock: SlowClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    turned = threading.Event()
    blocks = 0

    class WaitingFile(TickFile):
        def batches(self, symbol: str, point: float, start: FilePosition = START) -> Iterator[FileBatch]:
            nonlocal blocks
            for batch in super().batches(symbol, point, start):
                turned.clear()
                assert turned.wait(PATIENCE_S), "the loop stood still while a block was read"
                blocks += 1
                yield batch

    size = big_recording(tmp_path)
    monkeypatch.setattr(replay, "TickFile", WaitingFile)
    playing = asyncio.create_task(play(tmp_path, clock))
    while not playing.done():
        await asyncio.sleep(0)
        turned.set()

    assert len((await playing).ticks) == 1
    assert blocks >= size / BLOCK


async def test_big_recording_is_never_in_memory_whole(tmp_path: Path, clock: SlowClock) -> None:
    size = big_recording(tmp_path)
    tracemalloc.start()
    try:
        await play(tmp_path, clock)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert most < size / 4


async def test_replay_that_is_ended_reads_no_further(tmp_path: Path, clock: SlowClock) -> None:
    big_recording(tmp_path)
    before = {thread.name for thread in threading.enumerate()}
    playing = asyncio.create_task(play(tmp_path, clock, 1.0))
    readers = list[threading.Thread]()
    while not readers:
        await asyncio.sleep(0)
        readers = [thread for thread in threading.enumerate() if thread.name not in before]
    playing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await playing

    await asyncio.to_thread(readers[0].join, PATIENCE_S)
    assert not readers[0].is_alive()
