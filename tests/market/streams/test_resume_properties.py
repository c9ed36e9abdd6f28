"""Sessions that end anywhere: together they are the source, but for what was announced as lost."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from market.streams.protocol.messages import Resume, Subscribe
from market.streams.protocol.subscriptions import Subscriptions
from market.streams.resume import LastSent, RecentFrames

KEEP_MS, MAX_FRAMES = 1_000, 6
SYMBOLS = ("EURUSD", "GBPUSD", "XAUUSD")
Step = tuple[str, Any]

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
        self.recoveries = 0
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
        self.recent.add(symbol, seq, json.dumps({"symbol": symbol, "n": seq}).encode(), self.now_ms)
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
        frames = list(opening.frames)
        self.recoveries += sum(json.loads(text)["symbol"] not in lost for _, text in frames)
        for seq, text in frames[:arriving]:
            symbol = json.loads(text)["symbol"]
            assert json.loads(text)["n"] == seq
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


@settings(max_examples=200)
@given(st.booleans(), steps)
def test_sessions_together_are_the_source(has_all: bool, lived: list[Step]) -> None:
    world = World(has_all)
    for name, value in lived:
        getattr(world, name)(value)


def test_the_world_sees_recoveries() -> None:
    world = World(has_all=True)
    for name, value in (("tick", "EURUSD"), ("connect", None), ("tick", "EURUSD"), ("drop", None)) * 2:
        getattr(world, name)(value)
    world.tick("EURUSD")
    world.connect(None)

    assert world.recoveries == 2
