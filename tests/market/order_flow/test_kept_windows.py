"""The windows that absorption is compared with survive a restart, and end with their series."""

from __future__ import annotations

import pytest
from django.conf import LazySettings

from core.threads import in_thread
from instruments.catalogue import catalogue
from instruments.models import Instrument
from market.engine.engine import Engine
from market.models import AbsorptionWindows
from market.prices.order_flow import UNITS, WINDOW_MS, WINDOWS
from market.prices.quotes import Prices
from market.prices.records import AbsorptionFound, AnyRecord, Tick
from tests.factories import make_instrument
from tests.market.running import flush, restarted
from tests.market.store.test_engine_store import broken_database
from tests.market.store.test_series import SilentRunner
from tests.market.ticking import NOON_MS

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("clock"), pytest.mark.services]
ORDINARY = 2 * WINDOWS
"""Ticks of the windows before the one in which buyers press."""


@pytest.fixture(autouse=True)
def instrument(transactional_db: None) -> Instrument:
    return make_instrument("EURUSD", source="push", order_flow_source="trades", volume_kind="traded")


def trade(after_ms: int, volume: float, side: int) -> Tick:
    return Tick("EURUSD", 1.0, 1.0002, NOON_MS + after_ms, volume, side)


def trades() -> list[Tick]:
    """Two in each of sixty ordinary windows, four of one that stands out, and one of a later window."""
    ordinary = [
        trade(number * WINDOW_MS + place, 10.0 + number % 2 * 10, side)
        for number in range(WINDOWS)
        for place, side in enumerate((1, -1))
    ]
    pressing = [trade(WINDOWS * WINDOW_MS + place, 50.0, 1) for place in range(4)]
    return [*ordinary, *pressing, trade((WINDOWS + 2) * WINDOW_MS, 1.0, -1)]


def feed(engine: Engine, ticks: list[Tick]) -> Engine:
    for tick in ticks:
        assert engine.accept(tick, tick.time_ms) is None
    return engine


def make_engine(ticks: list[Tick]) -> Engine:
    return feed(Engine(Prices("bid")), ticks)


def found(records: list[AnyRecord]) -> list[AnyRecord]:
    return [record for record in records if isinstance(record, AbsorptionFound)]


@pytest.mark.parametrize("written", [1, ORDINARY - 1, ORDINARY, ORDINARY + 2, ORDINARY + 4, ORDINARY + 5])
@pytest.mark.parametrize("lost", [0, 1, 4])
def test_kill_at_any_tick_changes_no_absorption(written: int, lost: int) -> None:
    """The database holds the first ticks, the journal the next, and the others come after the restart."""
    every, killed = trades(), written + lost
    whole = found(make_engine(every).records)
    assert [record.volume for record in whole if isinstance(record, AbsorptionFound)] == [200.0]
    engine = make_engine(every[:written])
    told = found(engine.records)
    flush(engine)
    engine.records.clear()
    feed(engine, every[written:killed])

    successor = restarted()
    for record in engine.records:
        successor.repeat(record, NOON_MS)
    feed(successor, every[killed:])

    assert [*told, *found(engine.records), *found(successor.records)] == whole


def test_absorption_that_the_clock_found_is_not_told_again() -> None:
    every = trades()
    engine = make_engine(every[:ORDINARY])
    flush(engine)
    engine.records.clear()
    feed(engine, every[ORDINARY:-1]).keep_time(every[-1].time_ms)
    assert len(found(engine.records)) == 1

    successor = restarted()
    for record in engine.records:
        successor.repeat(record, NOON_MS)

    assert found(feed(successor, every[-1:]).records) == []


def test_windows_that_could_not_be_written_are_written_later() -> None:
    engine = make_engine(trades()[:3])
    with broken_database("market_lastquote"):
        assert not flush(engine)
    assert flush(engine)
    assert AbsorptionWindows.objects.get().volumes == [[10 * UNITS, 10 * UNITS]]


async def test_windows_end_with_their_series(settings: LazySettings) -> None:
    settings.DEMO = True
    await Instrument.objects.aupdate(order_flow_source="tick_rule", volume_kind="ticks")
    await catalogue.load()
    async with SilentRunner() as silent:
        for after_s in (1, 2, 6):
            assert silent.tick("push", 1 + after_s / 100_000, after_s) is None
        await silent.runner.writer.flush()
        assert await in_thread(AbsorptionWindows.objects.exists)
        await silent.reprice("demo")
        assert not await in_thread(AbsorptionWindows.objects.exists)
