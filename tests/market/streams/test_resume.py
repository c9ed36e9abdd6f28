"""Sessions that end anywhere: together they are the source, but for what was announced as lost."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from market.streams.protocol.messages import Resume, Subscribe
from market.streams.protocol.subscriptions import Subscriptions
from market.streams.resume import LastSent, Opening, RecentFrames, ReplayAllowance

NOW_MS = 1_795_000_000_000
KEEP_MS, MAX_FRAMES = 1_000, 6
SYMBOLS = ("EURUSD", "GBPUSD", "XAUUSD")

steps = st.lists(
    st.one_of(
        st.tuples(st.just("tick"), st.sampled_from(SYMBOLS)),
        st.tuples(st.just("tick"), st.sampled_from(SYMBOLS)),
        st.tuples(st.just("wait"), st.integers(0, 2_000)),
        # How many of the frames of its opening arrive before the socket dies again; None: all.
        st.tuples(st.just("connect"), st.none() | st.integers(0, 4)),
        st.tuples(st.just("drop"), st.none()),
        st.tuples(st.just("restart"), st.none()),
        st.tuples(st.just("miss"), st.sampled_from(SYMBOLS)),
    ),
    min_size=20,
    max_size=60,
)


class World:
    """A source, a process that serves one client, and the ledger that the client keeps."""

    def __init__(self, has_all: bool) -> None:
        self.recent = RecentFrames(KEEP_MS, MAX_FRAMES)
        self.symbols = () if has_all else SYMBOLS
        self.now_ms, self.epochs = 0, 0
        self.seqs: dict[str, int] = {}
        self.came_ms: dict[tuple[str, int], int] = {}
        self.first: dict[str, int] = {}
        """From which number on this process has heard all."""
        self.is_connected = False
        self.epoch = ""
        self.positions: dict[str, int] = {}
        self.restart(None)

    def restart(self, _: None) -> None:
        self.epochs += 1
        self.is_connected = False
        self.recent.restart(f"e{self.epochs}")
        self.seqs = dict.fromkeys(SYMBOLS, 0)
        self.first = dict.fromkeys(SYMBOLS, 1)
        self.came_ms.clear()
        for symbol in SYMBOLS:
            self.recent.know(LastSent(symbol, 0))

    def wait(self, ms: int) -> None:
        self.now_ms += ms

    def tick(self, symbol: str) -> None:
        seq = self.seqs[symbol] = self.seqs[symbol] + 1
        self.came_ms[symbol, seq] = self.now_ms
        self.recent.add(symbol, seq, frame(symbol, seq), self.now_ms)
        if self.is_connected:
            self.receive(symbol, seq)

    def miss(self, symbol: str) -> None:
        """A frame goes by unheard: what is written is read anew, and the numbering goes on."""
        self.seqs[symbol] += 1
        self.is_connected = False
        self.recent.restart(self.recent.epoch)
        for known, seq in self.seqs.items():
            self.first[known] = seq + 1
            self.recent.know(LastSent(known, seq))

    def drop(self, _: None) -> None:
        self.is_connected = False

    def connect(self, arriving: int | None) -> None:
        subscribed = Subscriptions()
        change = subscribed.subscribe(Subscribe(symbols=list(self.symbols) or UNSET), lambda _: True)
        resume = Resume(self.epoch, dict(self.positions)) if self.positions else None
        opening = self.recent.open(subscribed, change, resume, self.now_ms)
        self.judge(opening.unrecovered)
        lost = set(opening.unrecovered)
        self.epoch, self.positions = self.recent.epoch, dict(opening.positions)
        for symbol, seq in told(opening)[:arriving]:
            if symbol in lost:
                assert seq == self.positions[symbol]
            else:
                self.receive(symbol, seq)
        self.is_connected = arriving is None

    def receive(self, symbol: str, seq: int) -> None:
        """Neither gap nor duplicate."""
        assert seq == self.positions[symbol] + 1
        self.positions[symbol] = seq

    def judge(self, unrecovered: list[str]) -> None:
        """Nothing is given up that could be had, and nothing is promised that could not."""
        for symbol, position in self.positions.items():
            missed = range(position + 1, self.seqs[symbol] + 1)
            is_whole = self.epoch == self.recent.epoch and (
                not missed
                or (
                    0 < len(missed) <= MAX_FRAMES
                    and position > 0
                    and missed[0] >= self.first[symbol]
                    and self.came_ms[symbol, missed[0]] >= self.now_ms - KEEP_MS
                )
            )
            assert (symbol not in unrecovered) == is_whole


def frame(symbol: str, seq: int) -> bytes:
    return f'{{"symbol":"{symbol}","n":{seq}}}'.encode()


def told(opening: Opening) -> list[tuple[str, int]]:
    """Symbol and number of each frame; that it is the frame of this number is checked on the way."""
    found = [(json.loads(text)["symbol"], seq, text) for seq, text in opening.frames]
    assert all(text == frame(symbol, seq) for symbol, seq, text in found)
    return [(symbol, seq) for symbol, seq, _ in found]


@settings(max_examples=200)
@given(st.booleans(), steps)
def test_sessions_together_are_the_source(has_all: bool, lived: list[tuple[str, Any]]) -> None:
    world = World(has_all)
    for name, value in lived:
        getattr(world, name)(value)


@pytest.fixture
def recent() -> RecentFrames:
    recent = RecentFrames()
    recent.restart("e1")
    return recent


def add(recent: RecentFrames, symbol: str, seqs: range, now_ms: int = NOW_MS, **more: Any) -> None:
    for seq in seqs:
        recent.add(symbol, seq, frame(symbol, seq), now_ms, **more)


def open_with(
    recent: RecentFrames,
    *symbols: str,
    positions: dict[str, int] | None = None,
    epoch: str = "e1",
    now_ms: int = NOW_MS,
    features: tuple[Any, ...] = (),
    before: Subscriptions | None = None,
    allowance: ReplayAllowance | None = None,
) -> Opening:
    subscribed = before or Subscriptions()
    resume = None if positions is None else Resume(epoch, positions)
    change = subscribed.subscribe(
        Subscribe(symbols=list(symbols) or UNSET, features=frozenset(features)), lambda name: name != "GONE"
    )
    opening = recent.open(subscribed, change, resume, now_ms, allowance)
    return msgspec.structs.replace(opening, frames=list(opening.frames))


def numbers(opening: Opening) -> list[int]:
    return [seq for _, seq in told(opening)]


@pytest.mark.parametrize(
    ("position", "epoch", "away_ms"),
    [
        pytest.param(5, "e1", 120_001, id="longer than 120 s"),
        pytest.param(10, "e0", 0, id="wrong epoch and the last number"),
        pytest.param(11, "e1", 0, id="from the future"),
        pytest.param(2**63 - 1, "e1", 0, id="from the far future"),
    ],
)
def test_what_is_not_whole_is_not_recovered_at_all(
    recent: RecentFrames, position: int, epoch: str, away_ms: int
) -> None:
    add(recent, "EURUSD", range(4, 11))
    at_most = open_with(recent, "EURUSD", positions={"EURUSD": 8}, now_ms=NOW_MS + 120_000)
    assert (numbers(at_most), at_most.unrecovered) == ([9, 10], [])

    opening = open_with(
        recent, "EURUSD", positions={"EURUSD": position}, epoch=epoch, now_ms=NOW_MS + away_ms
    )
    assert opening.unrecovered == ["EURUSD"]
    assert (opening.positions, numbers(opening)) == ({"EURUSD": 10}, [10])


def before(*seqs: int, came_ms: int = NOW_MS) -> LastSent:
    """What another process has sent up to number 4."""
    return LastSent("EURUSD", 4, before=[(came_ms, seq, frame("EURUSD", seq)) for seq in seqs])


@pytest.mark.parametrize(
    ("known", "came", "position", "replayed"),
    [
        pytest.param(None, [range(1, 1502)], 501, range(502, 1502), id="as many frames as are recovered"),
        pytest.param(None, [range(1, 1502)], 500, None, id="one frame more"),
        pytest.param(None, [range(1, 6), range(8, 11)], 4, None, id="a hole"),
        pytest.param(None, [range(1, 6), range(8, 11)], 8, range(9, 11), id="behind the hole"),
        pytest.param(before(1, 2, 3, 4), [range(5, 7)], 2, range(3, 7), id="with what comes now"),
        pytest.param(before(1, 2, 3), [], 4, range(0), id="nothing of the other process was missed"),
        pytest.param(before(3, 4, came_ms=NOW_MS - 120_001), [], 2, None, id="sent too long ago"),
        pytest.param(
            before(1, 2, 3, 4, came_ms=NOW_MS + 60_000), [range(5, 7)], 1, range(2, 7), id="put back"
        ),
        *(
            pytest.param(before(*sent), [], position, None, id=f"in part: {sent}")
            for sent, position in [((1, 2, 3), 2), ((1, 2, 3, 4, 5), 2), ((1, 3, 4), 1), ((3, 4), 1), ((), 2)]
        ),
    ],
)
def test_missed_frames_are_replayed_whole_or_not_at_all(
    recent: RecentFrames, known: LastSent | None, came: list[range], position: int, replayed: range | None
) -> None:
    if known is not None:
        recent.know(known)
    for seqs in came:
        add(recent, "EURUSD", seqs)
    opening = open_with(recent, "EURUSD", positions={"EURUSD": position})

    assert opening.unrecovered == (["EURUSD"] if replayed is None else [])
    if replayed is not None or not came:
        assert numbers(opening) == list(replayed or ())


def test_clock_that_is_set_back_changes_no_order(recent: RecentFrames) -> None:
    add(recent, "EURUSD", range(1, 5))
    add(recent, "EURUSD", range(5, 9), NOW_MS - 3_600_000)

    assert numbers(open_with(recent, "EURUSD", positions={"EURUSD": 1})) == list(range(2, 9))


def test_symbols_come_in_the_order_in_which_they_came(recent: RecentFrames) -> None:
    for seq in (1, 2, 3):
        add(recent, "XAUUSD", range(seq, seq + 1), NOW_MS + 10 * seq)
        add(recent, "EURUSD", range(seq, seq + 1), NOW_MS + 10 * seq + 5)
    opening = open_with(recent, "eurusd", "XAUUSD", positions={"eurusd": 1, "XAUUSD": 1})

    assert told(opening) == [("XAUUSD", 2), ("EURUSD", 2), ("XAUUSD", 3), ("EURUSD", 3)]


@pytest.mark.parametrize("named", ["EURUSD", "XAUUSD", "EURSUD", "EURUSD/1m"])
def test_position_of_what_is_unknown_or_not_subscribed_is_unrecovered(
    recent: RecentFrames, named: str
) -> None:
    """It may be misspelt: to say that all was recovered would hide what was missed."""
    add(recent, "XAUUSD", range(1, 11))
    for position in (0, 9):
        opening = open_with(recent, "EURUSD", "gone", positions={named: position, "GONE": 9})
        assert opening == Opening({"EURUSD": 0}, [named], [])


def test_candles_are_sent_from_their_first_frame_on() -> None:
    """Of a day's candles none may have come for hours: 0 is where its client is."""
    candles = RecentFrames(from_first=True)
    candles.restart("e1")
    candles.know(LastSent("EURUSD", 0))
    assert open_with(candles, "EURUSD", positions={"EURUSD": 0}) == Opening({"EURUSD": 0}, [], [])
    add(candles, "EURUSD", range(1, 4))
    add(candles, "XAUUSD", range(4, 7))

    opening = open_with(candles, "EURUSD", "XAUUSD", positions={"EURUSD": 0, "XAUUSD": 0})

    assert opening.unrecovered == ["XAUUSD"]
    assert told(opening) == [("XAUUSD", 6), ("EURUSD", 1), ("EURUSD", 2), ("EURUSD", 3)]


def test_what_comes_already_is_not_replayed(recent: RecentFrames) -> None:
    add(recent, "EURUSD", range(1, 11))
    subscribed = Subscriptions()
    open_with(recent, "EURUSD", before=subscribed)
    opening = open_with(recent, "EURUSD", positions={"EURUSD": 5}, features=("snapshot",), before=subscribed)

    assert opening == Opening({"EURUSD": 10}, [], [])


def test_all_symbols_are_resumed_by_their_positions(recent: RecentFrames) -> None:
    add(recent, "EURUSD", range(1, 11))
    add(recent, "XAUUSD", range(1, 11))
    opening = open_with(recent, positions={"EURUSD": 9, "NOPE": 3})

    assert opening.unrecovered == ["NOPE"]
    assert opening.positions == {"EURUSD": 9, "NOPE": 0, "XAUUSD": 10}
    assert told(opening) == [("EURUSD", 10)]


def test_snapshot_is_the_last_tick_though_an_absorption_or_another_process_came_after(
    recent: RecentFrames,
) -> None:
    add(recent, "EURUSD", range(1, 11))
    add(recent, "EURUSD", range(11, 12), is_tick=False)
    recent.know(LastSent("XAUUSD", 7, frame("XAUUSD", 7)))
    opening = open_with(recent, "EURUSD", "XAUUSD", features=("snapshot",))

    assert opening.positions == {"EURUSD": 11, "XAUUSD": 7}
    assert told(opening) == [("EURUSD", 10), ("XAUUSD", 7)]
    assert told(open_with(recent, "EURUSD", "XAUUSD", positions={"XAUUSD": 7})) == []


def test_no_client_resumes_over_the_beginning_of_another_series(recent: RecentFrames) -> None:
    add(recent, "EURUSD", range(1, 4))
    recent.begin_series("EURUSD", None)
    away = [open_with(recent, "EURUSD", positions={"EURUSD": seq}).unrecovered for seq in (1, 3)]
    add(recent, "EURUSD", range(4, 7))
    assert away == [["EURUSD"]] * 2
    assert open_with(recent, "EURUSD", positions={"EURUSD": 3}).unrecovered == ["EURUSD"]
    assert numbers(open_with(recent, "EURUSD", positions={"EURUSD": 4})) == [5, 6]


def test_frames_are_those_of_the_moment_of_asking_however_late_they_are_read(recent: RecentFrames) -> None:
    add(recent, "EURUSD", range(1, 1_001))
    subscribed = Subscriptions()
    change = subscribed.subscribe(Subscribe(symbols=["EURUSD"]), lambda _: True)
    opening = recent.open(subscribed, change, Resume("e1", {"EURUSD": 1}), NOW_MS)
    add(recent, "EURUSD", range(1_001, 3_001))
    assert numbers(opening) == list(range(2, 1_001))


def test_one_socket_is_replayed_all_that_is_kept_once_in_its_time(recent: RecentFrames) -> None:
    add(recent, "EURUSD", range(1, 1_001))
    add(recent, "XAUUSD", range(1, 3))
    allowance = ReplayAllowance()

    def resume(now_ms: int, position: int) -> list[str]:
        add(recent, "EURUSD", range(recent.positions(["EURUSD"])["EURUSD"] + 1, 2_002), now_ms)
        return open_with(
            recent, "EURUSD", positions={"EURUSD": position}, now_ms=now_ms, allowance=allowance
        ).unrecovered

    assert [resume(NOW_MS, 1_001) for _ in range(3)] == [[], [], ["EURUSD"]]
    assert resume(NOW_MS, 2_001) == []
    assert resume(NOW_MS + 120_000, 1_001) == ["EURUSD"]
    add(recent, "EURUSD", range(2_002, 2_005), NOW_MS + 120_001)
    assert resume(NOW_MS + 120_001, 2_001) == []
