"""The demo's publishers: once in an interval, a few at a time, and only those that the demo made."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from core import clock
from core.times import moment
from demo.people import seed_people
from demo.publisher_rules import (
    BARS,
    PUBLISHERS,
    MarketView,
    TradeIdea,
    breakout,
    reversion,
    strongest,
    terms_of,
)
from demo.publishers import (
    INTERVAL_MS,
    MOST_ACTIVE,
    demo_publishers,
    publish_all,
    publish_one,
    start_in_demo,
    view_of,
)
from instruments.catalogue import catalogue
from instruments.models import Instrument, WithheldSource
from market import runtime as market
from market.models import UnfinishedPast
from market.prices import TIMEFRAMES, CandleRow
from signals_feed.models import Signal
from tests.factories import make_instrument, put_candles, put_quote
from tests.signals_feed.published_signals import make_publisher

pytestmark = pytest.mark.django_db
BREAKOUT = PUBLISHERS[0]
SYMBOLS = [f"SYM{number}" for number in range(MOST_ACTIVE + 1)]


@pytest.fixture(autouse=True)
def _market() -> Iterator[None]:
    for symbol in SYMBOLS:
        make_instrument(symbol)
        put_quote(symbol, 1.0841, 1.08424)
    yield
    market.prices.clear()


def views(*symbols: str) -> list[MarketView]:
    """Each breaks out upwards."""
    bars = [CandleRow(opened_ms=0, open=1.083, high=1.084, low=1.082, close=1.083, volume=1.0)] * BARS
    return [MarketView(symbol, 1.0841, 1.08424, bars) for symbol in symbols]


def test_the_strongest_idea_is_published_at_the_market() -> None:
    seed_people()
    signal = publish_one(BREAKOUT, views("SYM0"), clock.now_ms())
    assert signal is not None
    assert (signal.user.username, signal.direction) == ("house_breakout", "buy")
    assert (signal.entry, signal.stop_loss) == (Decimal("1.08424"), Decimal("1.08224"))
    assert signal.take_profit == Decimal("1.08824")


def test_however_often_anybody_asks_one_is_published_in_an_interval() -> None:
    seed_people()
    at_ms = clock.now_ms()
    began_ms = at_ms - at_ms % INTERVAL_MS
    moments = (began_ms, began_ms + 1, began_ms + INTERVAL_MS - 1, began_ms + INTERVAL_MS)
    found = [publish_one(BREAKOUT, views(*SYMBOLS), each) is not None for each in moments]
    assert found == [True, False, False, True]


def test_no_instrument_is_published_twice_and_no_more_than_a_few_are_active() -> None:
    seed_people()
    for number in range(MOST_ACTIVE + 3):
        publish_one(BREAKOUT, views("SYM0", "SYM1"), number * INTERVAL_MS)
    assert Signal.objects.count() == 2
    for number in range(100, 103 + MOST_ACTIVE):
        publish_one(BREAKOUT, views(*SYMBOLS), number * INTERVAL_MS)
    assert Signal.objects.active().count() == MOST_ACTIVE


def quarters() -> list[int]:
    """When the last bars of a quarter of an hour opened."""
    step_ms = TIMEFRAMES["15m"]
    now_ms = clock.now_ms() - clock.now_ms() % step_ms
    return [now_ms - number * step_ms for number in range(30, 0, -1)]


@pytest.mark.django_db(transaction=True)
def test_they_wait_until_the_past_of_the_demo_is_there(settings: Any) -> None:
    settings.DEMO = True
    seed_people()
    put_candles("SYM0", "15m", quarters())
    instrument = Instrument.objects.get(symbol="SYM0")
    UnfinishedPast.objects.create(instrument=instrument, until_at=moment(clock.now_ms()))
    asyncio.run(publish_all())
    assert not Signal.objects.exists()
    UnfinishedPast.objects.all().delete()
    asyncio.run(publish_all())
    assert Signal.objects.count() == 1


def test_person_who_has_the_name_already_is_left_alone() -> None:
    make_publisher(BREAKOUT.name)
    seed_people()
    assert publish_one(BREAKOUT, views("SYM0"), clock.now_ms()) is None


async def test_nobody_works_outside_the_demo(settings: Any) -> None:
    def at_work() -> bool:
        return any(task.get_name() == demo_publishers.name for task in asyncio.all_tasks())

    await start_in_demo()
    assert not at_work()
    settings.DEMO = True
    await start_in_demo()
    assert at_work()
    await demo_publishers.stop()
    assert not at_work()


def test_market_is_seen_by_its_last_closed_bars() -> None:
    candles = put_candles("SYM0", "15m", quarters())
    view = view_of(catalogue.get("SYM0"))
    assert view is not None
    seen = [(bar.high, bar.low, bar.close) for bar in view.bars]
    assert seen == [(each.high, each.low, each.close) for each in candles[-BARS:]]


def test_market_without_a_fresh_quote_that_may_be_passed_on_is_not_seen() -> None:
    assert view_of(catalogue.get("SYM0")) is not None
    put_quote("SYM0", at_ms=1)
    assert view_of(catalogue.get("SYM0")) is None
    WithheldSource.objects.create(name="push", why="Its terms.")
    catalogue.load_now()
    assert view_of(catalogue.get_any("SYM1")) is None


# The demo publishers' rules, as their statements have them.
def bar(high: float, low: float, close: float) -> CandleRow:
    return CandleRow(opened_ms=0, open=close, high=high, low=low, close=close, volume=1.0)


FLAT = [bar(101.0, 99.0, 100.0)] * BARS


def view(
    mid: float, bars: list[CandleRow] = FLAT, symbol: str = "EURUSD", spread: float = 0.02
) -> MarketView:
    return MarketView(symbol, mid - spread / 2, mid + spread / 2, bars)


def waves() -> list[CandleRow]:
    """Closes of 99 and 101 in turn: a mean of 100, a deviation of 1."""
    return [bar(102.0, 98.0, close) for close in (99.0, 101.0)] * (BARS // 2)


@pytest.mark.parametrize(
    ("mid", "direction"), [(100.75, "buy"), (100.74, None), (99.26, None), (99.25, "sell"), (98, "sell")]
)
def test_breakout_follows_a_price_in_the_outer_eighth_of_the_range(mid: float, direction: str | None) -> None:
    idea = breakout(view(mid))
    assert (idea and idea.direction) == direction
    if idea is not None:
        # It risks one average bar for two.
        assert (idea.stop_distance, idea.target_distance) == (2.0, 4.0)


@pytest.mark.parametrize(("mid", "direction"), [(103, "sell"), (98, "buy")])
def test_reversion_trades_back_to_the_mean_and_risks_as_much(mid: float, direction: str) -> None:
    idea = reversion(view(mid, waves()))
    assert idea is not None
    assert idea.direction == direction
    assert [idea.stop_distance, idea.target_distance] == pytest.approx([abs(mid - 100)] * 2)
    assert idea.strength == pytest.approx(abs(mid - 100))


@pytest.mark.parametrize("rule", [breakout, reversion])
def test_market_that_never_moved_suggests_nothing(rule: object) -> None:
    still = [bar(100.0, 100.0, 100.0)] * BARS
    assert strongest(rule, [view(100.0, still)]) is None  # type: ignore[arg-type]


def test_the_strongest_of_all_markets_with_enough_bars_is_published() -> None:
    ideas = [view(101, symbol="A"), view(103, symbol="B"), view(99, symbol="C")]
    chosen = strongest(breakout, [*ideas, view(104, FLAT[1:], symbol="D")])
    assert chosen is not None
    assert chosen.symbol == "B"


def test_idea_that_does_not_pay_for_its_spread_is_dropped() -> None:
    assert strongest(reversion, [view(100.4, waves(), spread=0.1)]) is None
    assert strongest(reversion, [view(100.6, waves(), spread=0.1)]) is not None


@pytest.mark.parametrize(
    ("direction", "expected"), [("buy", ("1.09810", "1.10410")), ("sell", ("1.10200", "1.09600"))]
)
def test_levels_start_from_the_price_that_is_paid(direction: str, expected: tuple[str, ...]) -> None:
    idea = TradeIdea("EURUSD", direction, 0.002, 0.004, 1)
    found = terms_of(idea, Decimal("1.1"), Decimal("1.1001"), 5)
    assert found == ("EURUSD", direction, *map(Decimal, expected), None)
