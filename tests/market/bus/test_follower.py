"""Prices that follow the bus: whatever waits, they are the same at every request."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from copy import deepcopy

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.times import MINUTE_MS
from instruments.catalogue import catalogue
from market.engine.bus.bus_reader import BusListener, PriceFollower
from market.prices.quotes import Prices, Quote
from market.prices.records import AnyRecord, CandlesEnded, SeriesBegan, TickAccepted
from market.store.checkpoints import Checkpoint
from tests.factories import make_instrument
from tests.market.ticking import NOON_MS

SYMBOLS = ("EURUSD", "GBPUSD", "XAUUSD")
Step = tuple[str, str]
steps = st.lists(
    st.tuples(
        st.sampled_from(["tick", "tick", "tick", "minute", "end", "read", "look", "follow", "everything"]),
        st.sampled_from(SYMBOLS),
    ),
    max_size=80,
)
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("transactional_db")]


@pytest.fixture(autouse=True)
def _instruments() -> None:
    for symbol in SYMBOLS:
        make_instrument(symbol)
    catalogue.load_now()


class Followed:
    """A web process whose clients follow these symbols, or all."""

    def __init__(self, followed: set[str] | None) -> None:
        self.prices = Prices("bid")
        self.of: dict[str, list[AnyRecord]] = {symbol: [] for symbol in ("", *SYMBOLS)}
        self.in_turn: list[AnyRecord] = []
        """Those that were heard at once."""
        self.follower = PriceFollower(
            self.prices, BusListener(self._hear, self._keep, self._miss, lambda: followed)
        )
        self.follower.wanted.has_all = followed is None

    def _hear(self, records: Sequence[AnyRecord]) -> None:
        self.in_turn += records
        for record in records:
            self.of[record.symbol].append(record)

    def _keep(self, symbol: str, records: Sequence[AnyRecord], came_ms: Sequence[int]) -> None:
        assert len(records) == len(came_ms)
        self.of[symbol] += records

    def _miss(self, epoch: str, checkpoints: Mapping[str, Checkpoint]) -> None:
        raise AssertionError

    async def do(self, step: Step, records: list[AnyRecord]) -> None:
        kind, symbol = step
        if kind == "read":
            await self.follower.take([], deepcopy(records))
        elif kind == "look":
            self.prices.quote(symbol)
        elif kind == "follow":
            self.follower.follow([symbol])
        elif kind == "everything":
            self.follower.follow_all()

    def seen(self) -> list[object]:
        found = list[object]()
        for symbol in SYMBOLS:
            facts = catalogue.get_any(symbol)
            quote, history = self.prices.quote(symbol), self.prices.candles(facts)
            found += [
                None if quote is None else (quote.whole, quote.seq),
                *(history.bars(name, 500, closed_only=False).ohlcv for name in ("1m", "1h")),
            ]
        return found


def record_of(step: Step, seq: int, at_ms: int) -> AnyRecord:
    kind, symbol = step
    if kind == "end":
        return CandlesEnded(symbol, at_ms - at_ms % MINUTE_MS)
    return TickAccepted(symbol, 1 + seq / 1_000, 1.5 + seq / 1_000, at_ms, seq / 7, seq)


async def run(each_step: list[Step]) -> tuple[Followed, Followed]:
    """Two processes hear the same: in one of them somebody follows all from the start."""
    eager, lazy = Followed(None), Followed(set())
    seq, at_ms, waiting = 0, NOON_MS, list[AnyRecord]()
    for process in (eager, lazy):
        process.follower.start()
    for step in [*each_step, ("read", "")]:
        if step[0] in ("tick", "minute", "end"):
            seq, at_ms = seq + 1, at_ms + (MINUTE_MS if step[0] == "minute" else 700)
            waiting.append(record_of(step, seq, at_ms))
        else:
            for process in (eager, lazy):
                await process.do(step, waiting)
            waiting = [] if step[0] == "read" else waiting
    return eager, lazy


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps)
def test_records_wait_or_not_the_prices_and_what_is_heard_of_a_symbol_are_the_same(
    each_step: list[Step],
) -> None:
    eager, lazy = asyncio.run(run(each_step))

    assert lazy.seen() == eager.seen()
    assert lazy.of == eager.of


def test_only_what_is_followed_is_heard_at_once() -> None:
    _, lazy = asyncio.run(run([("follow", "GBPUSD"), ("tick", "EURUSD"), ("tick", "GBPUSD")]))

    assert [record.symbol for record in lazy.in_turn] == ["GBPUSD"]
    assert lazy.of["EURUSD"] == []


def test_series_begins_after_all_of_the_one_before() -> None:
    async def act() -> Followed:
        process = Followed(set())
        process.follower.start()
        await process.follower.take([], [record_of(("tick", "EURUSD"), 1, NOON_MS)])
        began = SeriesBegan("EURUSD", False, NOON_MS + 500, 1, 2.0, 2.5, NOON_MS + 400)
        after = record_of(("tick", "EURUSD"), 2, NOON_MS + 600)
        await process.follower.take([], [began, after])
        return process

    process = asyncio.run(act())

    assert [type(record) for record in process.of["EURUSD"]] == [TickAccepted, SeriesBegan, TickAccepted]
    bars = process.prices.candles(catalogue.get_any("EURUSD")).rows("1m", 10, closed_only=False)
    assert [bar.open for bar in bars] == [1.002]


def test_thread_that_looks_finds_what_waited_as_long_as_the_loop_runs() -> None:
    process = Followed(set())

    async def act(symbol: str) -> Quote | None:
        process.follower.start()
        await process.follower.take([], [record_of(("tick", symbol), 1, NOON_MS)])
        return await asyncio.to_thread(process.prices.quote, "EURUSD")

    quote = asyncio.run(act("EURUSD"))
    assert quote is not None
    assert quote.bid == 1.001
    asyncio.run(act("GBPUSD"))
    assert asyncio.run(asyncio.to_thread(process.prices.quote, "GBPUSD")) is None
