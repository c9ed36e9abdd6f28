"""When prices are unsettled, and who is told: each tick, how long in all, and every process at once."""

from __future__ import annotations

import asyncio

import pytest

from market import runtime as market
from market.engine.admission import SETTLED_AFTER_MS, Settling
from market.engine.engine import Engine
from market.engine.status import read_status
from market.prices.quotes import Prices
from market.prices.records import AnyRecord, StatusRecord, Tick, TickAccepted
from tests.factories import make_instrument
from tests.market.engine_status import tell, untold  # noqa: F401 - a fixture
from tests.market.running import flush, make_runner, restarted
from tests.market.ticking import NOON_MS
from tests.patience import until

pytestmark = pytest.mark.django_db(transaction=True)
OLD, NEW = 10.0, 20.0


@pytest.fixture(autouse=True)
def _instrument(transactional_db: None) -> None:
    make_instrument("EURUSD", outlier_percent="0.5", source="push")


def accept(engine: Engine, price: float, after_ms: int) -> str | None:
    at_ms = NOON_MS + after_ms
    return engine.accept(Tick("EURUSD", price, price, at_ms, 1.0), at_ms)


def said(engine: Engine) -> list[tuple[bool, int]]:
    ticks = [record for record in engine.records if isinstance(record, TickAccepted)]
    engine.records.clear()
    return [(tick.settled, tick.unsettled_ms) for tick in ticks]


@pytest.mark.parametrize(
    ("ticks", "expected"),
    [
        # Each at its price and time; what is refused says nothing.
        ([(OLD, 0), (OLD, 1)], [(True, 0), (True, 0)]),
        ([(OLD, 0), (NEW, 5), (NEW, 6), (NEW, 105)], [(True, 0), (True, 100)]),
        (
            [(OLD, 0), (NEW, 5), (OLD, 15), (OLD, 25), (OLD, 35)],
            [(True, 0), (False, 10), (False, 20), (True, 30)],
        ),
        # Another outlier begins the count and the time again, and nothing is counted twice.
        (
            [(OLD, 0), (NEW, 5), (OLD, 15), (OLD, 25), (NEW, 30), (OLD, 35), (OLD, 9_000), (OLD, 11_000)],
            [(True, 0), (False, 10), (False, 20), (False, 30), (False, 8_995), (True, 10_025)],
        ),
        ([(OLD, 0), (NEW, 5), (OLD, 10_004)], [(True, 0), (False, 9_999)]),
        ([(OLD, 0), (NEW, 5), (OLD, 10_005), (OLD, 30_000)], [(True, 0), (True, 10_000), (True, 10_000)]),
        # Two times add up.
        ([(OLD, 0), (NEW, 5), (NEW, 10_105), (OLD, 20_105)], [(True, 0), (True, 20_000)]),
    ],
)
def test_each_tick_says_whether_prices_are_settled_and_how_long_they_were_not(
    ticks: list[tuple[float, int]], expected: list[tuple[bool, int]]
) -> None:
    engine = Engine(Prices("bid"))
    for price, after_ms in ticks:
        accept(engine, price, after_ms)
    assert said(engine) == expected


def test_a_clock_that_is_set_back_takes_nothing_away() -> None:
    settling = Settling()
    settling.unsettle(NOON_MS)
    assert [settling.count(NOON_MS + after_ms) for after_ms in (500, 300, 700)] == [500, 500, 700]


@pytest.mark.parametrize("late_ms", [0, 3_000])
def test_time_alone_settles_them_but_not_while_something_may_be_unread(late_ms: int) -> None:
    engine = Engine(Prices("bid"))
    accept(engine, OLD, 0)
    assert accept(engine, NEW, 5) == "outlier"
    until_ms = NOON_MS + 5 + SETTLED_AFTER_MS + late_ms
    engine.keep_time(until_ms - 1, late_ms)
    assert engine.unsettled == {"EURUSD"}
    engine.keep_time(until_ms, late_ms)
    assert engine.unsettled == set()


@pytest.mark.parametrize("is_written", [True, False], ids=["checkpoint", "journal"])
def test_engine_that_starts_does_not_know_and_counts_on_from_the_one_before(*, is_written: bool) -> None:
    engine = Engine(Prices("bid"))
    for price, after_ms in ((OLD, 0), (NEW, 5), (OLD, 15)):
        accept(engine, price, after_ms)
    journal = [] if is_written else [*engine.records]
    if is_written:
        flush(engine)
    successor = restarted()
    for record in journal:
        successor.repeat(record, NOON_MS + 100)

    assert successor.unsettled == {"EURUSD"}
    for after_ms in (110, 120, 130):
        accept(successor, OLD, after_ms)
    begun_ms = 100 if journal else 0
    assert said(successor) == [(False, 120 - begun_ms), (False, 130 - begun_ms), (True, 140 - begun_ms)]
    assert successor.unsettled == set()


def test_an_instrument_that_refuses_no_outlier_is_settled_when_an_engine_starts() -> None:
    make_instrument("GBPUSD", outlier_percent=0, source="push")
    engine = Engine(Prices("bid"))
    assert engine.accept(Tick("GBPUSD", OLD, OLD, NOON_MS, 1.0), NOON_MS) is None
    flush(engine)
    assert restarted().unsettled == set()


@pytest.mark.usefixtures("clock")
def test_every_process_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("market.engine.runner.TELL_S", 1e6)
    told: list[tuple[str, ...]] = []

    def hear(records: list[AnyRecord]) -> None:
        told.extend(
            read_status(record.status).unsettled for record in records if type(record) is StatusRecord
        )

    async def act() -> None:
        engine = Engine(Prices("bid"))
        runner = make_runner(engine, hear=hear)
        await runner.start()
        await until(lambda: bool(told))
        accept(engine, OLD, 0)
        assert accept(engine, NEW, 5) == "outlier"
        runner.publish()
        await until(lambda: len(told) == 2)
        await runner.stop()

    asyncio.run(act())
    assert told == [(), ("EURUSD",)]


@pytest.mark.usefixtures("untold")
def test_a_process_knows_what_it_was_told() -> None:
    tell(unsettled=("EURUSD",))
    assert [market.is_unsettled(symbol) for symbol in ("EURUSD", "GBPUSD")] == [True, False]
