"""What each stage of the engine takes of a tick's time, and all of it, in microseconds of processor time, and
what it is fed with: so many instruments, half of them with trades, nothing random."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from instruments.catalogue import InstrumentFacts, catalogue
from instruments.facts import PUSH
from market.engine.admission import FeedChoice, FeedState, reason_to_refuse
from market.engine.bus.journal import encode
from market.engine.engine import Engine
from market.engine.instrument_state import InstrumentState
from market.prices.quotes import Prices
from market.prices.records import AnyRecord, Tick
from tests.factories import make_instrument

TICKS = 100_000
BATCH = 200
PER_MS = 20
WHOLE = "the whole engine"
T = TypeVar("T")


class Stages:
    """The same ticks through one stage after the other; each takes what the one before has made."""

    def __init__(self, instruments: list[InstrumentFacts], start_ms: int) -> None:
        self._facts = {facts.symbol: facts for facts in instruments}
        self._ticks = [
            make_tick(instruments[number % len(instruments)], number, start_ms + number // PER_MS)
            for number in range(1, TICKS + 1)
        ]
        self._records: list[AnyRecord] = []

    def run(self) -> dict[str, float]:
        stages: dict[str, Callable[[], None]] = {
            "checks at the door": self._check,
            "numbers, order flow, absorption": self._number,
            "board and candles": self._apply,
            "packing for the bus": self._pack,
            WHOLE: self._take,
        }
        return {name: per_tick(stage) for name, stage in stages.items()}

    def _check(self) -> None:
        last: dict[str, Tick] = {}
        for tick in self._ticks:
            facts = self._facts[tick.symbol]
            assert reason_to_refuse(tick, last.get(tick.symbol), None, facts, tick.time_ms) is None
            last[tick.symbol] = tick

    def _number(self) -> None:
        books = {
            symbol: InstrumentState(facts, FeedChoice((PUSH,), 0)) for symbol, facts in self._facts.items()
        }
        feed_state = FeedState()
        for tick in self._ticks:
            self._records += books[tick.symbol].number(tick, PUSH, tick.time_ms, feed_state)

    def _apply(self) -> None:
        prices = Prices("bid")
        for record in self._records:
            prices.apply(record, self._facts[record.symbol])

    def _pack(self) -> None:
        for batch in batches(self._records):
            encode(batch)

    def _take(self) -> None:
        engine = Engine(Prices("bid"))
        for batch in batches(self._ticks):
            assert not any(engine.take(PUSH, batch, batch[-1].time_ms))
            encode(engine.records)
            engine.records.clear()


def batches(items: list[T]) -> Iterator[list[T]]:
    for begin in range(0, len(items), BATCH):
        yield items[begin : begin + BATCH]


def per_tick(stage: Callable[[], None]) -> float:
    before_s = time.process_time()
    stage()
    return (time.process_time() - before_s) / TICKS * 1e6


DIGITS = 5
# Some pips up and down, more than a market moves: candles, order flow and absorption all have work.
WAVE = tuple((step * step % 41 - step % 19) / 100_000 for step in range(997))


def make_instruments(many: int) -> list[InstrumentFacts]:
    """Rows in the database, so that what becomes of their ticks is written."""
    for place in range(many):
        traded = {"volume_kind": "traded", "order_flow_source": "trades"} if place % 2 else {}
        make_instrument(f"BENCH{place:03}", source="push", **traded)
    return catalogue.active()


def make_tick(facts: InstrumentFacts, number: int, time_ms: int) -> Tick:
    """The number counts the ticks of all instruments."""
    bid = round(1.1 + WAVE[number % len(WAVE)], DIGITS)
    ask = round(bid + 0.00003, DIGITS)
    if facts.order_flow_source != "trades":
        return Tick(facts.symbol, bid, ask, time_ms, 0.0, 0, None, number)
    side = 1 if number % 3 else -1
    return Tick(facts.symbol, bid, ask, time_ms, number % 7 + 1.0, side, ask if side > 0 else bid, number)
