"""Each minute's order flow is kept with its candle, when the candle is closed."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal

import pytest
from hypothesis import example, given, settings

from core.times import MINUTE_MS
from instruments.catalogue import catalogue
from market.engine.engine import CLOSE_GRACE_MS, Engine
from market.prices.candles import PriceBar
from market.prices.order_flow import WINDOW_MS, WINDOWS, MinuteFlow
from market.prices.quotes import Prices
from market.prices.records import AbsorptionFound, AnyRecord, Tick, TickAccepted
from tests.factories import make_instrument
from tests.market.ticking import NOON_MS
from tests.market.trading_days import MARKETS, OVERTAKEN, TradingDays, make_markets, run_engine, trading_days

pytestmark = [pytest.mark.django_db, pytest.mark.services]
LATER_MS = NOON_MS + WINDOWS * WINDOW_MS


@pytest.fixture(autouse=True)
def _markets() -> None:
    make_markets()


def make_engine() -> Engine:
    traded = {"order_flow_source": "trades", "volume_kind": "traded"}
    make_instrument("EURUSD", source="push", stale_after_s=600, **traded)
    return Engine(Prices("bid"))


def trade(engine: Engine, time_ms: int, volume: float = 1.0, side: int = 1, at_ms: int | None = None) -> None:
    tick = Tick("EURUSD", 1.0, 1.0002, time_ms, volume, side)
    assert engine.accept(tick, time_ms if at_ms is None else at_ms) is None


def minutes(engine: Engine, symbol: str = "EURUSD") -> list[MinuteFlow]:
    own = catalogue.get(symbol).id
    return [each.minute for each in engine.minute_flows if each.instrument_id == own]


def alive(engine: Engine, since_ms: int, until_ms: int) -> None:
    """The source lives, and sends no tick."""
    for at_ms in range(since_ms, until_ms + 1, 5_000):
        engine.take("push", [], at_ms)
        engine.keep_time(at_ms)


def absorbing(engine: Engine) -> None:
    """Sixty ordinary windows, and one in which buyers pressed, just before 12:06."""
    for number in range(WINDOWS + 11):
        for side in (1, -1):
            trade(engine, NOON_MS + number * WINDOW_MS + 1_000, 10.0 + number % 2 * 10, side)
    trade(engine, NOON_MS + 6 * MINUTE_MS - 2_000, 200.0)


@pytest.mark.parametrize("closer", ["a trade", "a quote", "the clock"])
def test_minute_is_closed_without_the_tick_that_closes_it(closer: str) -> None:
    engine = make_engine()
    trade(engine, NOON_MS + 1, 2.5)
    trade(engine, NOON_MS + 2, 1.0, -1)
    if closer == "the clock":
        engine.keep_time(NOON_MS + MINUTE_MS + CLOSE_GRACE_MS)
    else:
        trade(engine, NOON_MS + MINUTE_MS, 4.0, int(closer == "a trade"))
    assert minutes(engine) == [MinuteFlow(NOON_MS, 1.0, 2.5, 1.5, 0)]


def test_flat_minute_has_no_volume_and_the_running_sum() -> None:
    engine = make_engine()
    trade(engine, NOON_MS + 1, 2.5)
    alive(engine, NOON_MS + 5_000, NOON_MS + 2 * MINUTE_MS + CLOSE_GRACE_MS)
    trade(engine, NOON_MS + 3 * MINUTE_MS, 1.0)

    assert minutes(engine)[:3] == [
        MinuteFlow(NOON_MS, 0.0, 2.5, 2.5, 0),
        MinuteFlow(NOON_MS + MINUTE_MS, 0.0, 0.0, 2.5, 0),
        MinuteFlow(NOON_MS + 2 * MINUTE_MS, 0.0, 0.0, 2.5, 0),
    ]


@pytest.mark.parametrize("basis", ["trades", "bid"])
def test_minutes_of_a_venues_history_have_none_nor_what_repeats_them(basis: str) -> None:
    engine = make_engine()
    trade(engine, NOON_MS + 1, 2.5)
    bars = [PriceBar(NOON_MS + number * MINUTE_MS, 1.0, 1.0, 1.0, 1.0, 5.0, 1.0, 1.0) for number in (1, 3)]
    at_ms = NOON_MS + 4 * MINUTE_MS
    engine.backfill("EURUSD", bars, basis, at_ms)
    alive(engine, at_ms, at_ms + MINUTE_MS + CLOSE_GRACE_MS)
    trade(engine, at_ms + 90_000, 1.0)
    trade(engine, at_ms + 2 * MINUTE_MS, 1.0)

    closed = [(bar.opened_ms - NOON_MS) // MINUTE_MS for _, name, bar, _ in engine.rows if name == "1m"]
    assert closed == [0, 1, 2, 3, 4, 5]
    assert minutes(engine) == [
        MinuteFlow(NOON_MS, 0.0, 2.5, 2.5, 0),
        MinuteFlow(NOON_MS + 5 * MINUTE_MS, 0.0, 1.0, 3.5, 0),
    ]


@pytest.mark.parametrize("closer", ["a tick", "a tick after a flat minute", "the clock", "a venue's history"])
def test_absorption_counts_in_its_minute_whoever_closes_it(closer: str) -> None:
    engine = make_engine()
    absorbing(engine)
    minute_ms, after_ms = NOON_MS + 5 * MINUTE_MS, NOON_MS + 6 * MINUTE_MS
    match closer:
        case "a tick":
            trade(engine, after_ms)
        case "a tick after a flat minute":
            for at_ms in range(after_ms, after_ms + 2 * MINUTE_MS, 5_000):
                engine.take("push", [], at_ms)
            trade(engine, after_ms + 70_000)
        case "the clock":
            engine.keep_time(after_ms + CLOSE_GRACE_MS)
        case _:
            bar = PriceBar(after_ms + MINUTE_MS, 1.0, 1.0, 1.0, 1.0, 5.0, 1.0, 1.0)
            engine.backfill("EURUSD", [bar], "bid", after_ms + 5 * MINUTE_MS)

    found = [record for record in engine.records if isinstance(record, AbsorptionFound)]
    assert [record.time_ms for record in found] == [after_ms]
    assert {each.opened_ms: each.absorptions for each in minutes(engine)}[minute_ms] == 1
    assert sum(each.absorptions for each in minutes(engine)) == 1


def test_successor_that_repeats_the_journal_comes_to_the_same() -> None:
    engine = make_engine()
    absorbing(engine)
    alive(engine, NOON_MS + 6 * MINUTE_MS, NOON_MS + 8 * MINUTE_MS + CLOSE_GRACE_MS)
    successor = Engine(Prices("bid"))

    for record in engine.records:
        successor.repeat(record, LATER_MS)

    assert successor.minute_flows == engine.minute_flows
    assert [each.absorptions for each in minutes(successor)] == [0, 0, 0, 0, 0, 1, 0]


def test_absorption_repeated_after_a_checkpoint_is_in_the_next() -> None:
    engine = make_engine()
    absorbing(engine)
    engine.keep_time(NOON_MS + 6 * MINUTE_MS + 500)
    engine.end_until(engine.instruments["EURUSD"], NOON_MS + 6 * MINUTE_MS - 1)
    found = AbsorptionFound("EURUSD", 500, "ask", 1.0, 9.0, 9.0, 0.0, 2.5, NOON_MS + 5 * MINUTE_MS + 30_000)
    engine.changed.clear()

    engine.repeat(found, LATER_MS)

    (checkpoint,) = engine.checkpoints(engine.changed.values()).values()
    assert checkpoint.flow_state["absorptions"] == 1
    assert checkpoint.flow_seq == 500


def sums_of(records: list[AnyRecord], symbol: str) -> dict[int, tuple[Decimal, Decimal, int]]:
    """What was published of each minute."""
    sums: dict[int, tuple[Decimal, Decimal, int]] = defaultdict(lambda: (Decimal(), Decimal(), 0))
    for record in records:
        if record.symbol != symbol:
            continue
        if isinstance(record, TickAccepted) and record.flow_seq:
            sold, bought, many = sums[record.time_ms // MINUTE_MS]
            more = Decimal(repr(record.bid_volume)), Decimal(repr(record.ask_volume))
            sums[record.time_ms // MINUTE_MS] = sold + more[0], bought + more[1], many
        elif isinstance(record, AbsorptionFound):
            sold, bought, many = sums[(record.time_ms - 1) // MINUTE_MS]
            sums[(record.time_ms - 1) // MINUTE_MS] = sold, bought, many + 1
    return sums


@settings(max_examples=30)
@example(OVERTAKEN)
@given(trading_days(late=True))
def test_every_closed_minute_has_the_sums_of_what_was_published(days: TradingDays) -> None:
    run = run_engine(days)

    for symbol in MARKETS:
        published = sums_of(run.engine.records, symbol)
        flows = {each.opened_ms: each for each in minutes(run.engine, symbol)}
        assert sorted(flows) == [candle.opened_ms for candle in run.candles(symbol)]
        for opened_ms, flow in flows.items():
            told = Decimal(repr(flow.bid_volume)), Decimal(repr(flow.ask_volume)), flow.absorptions
            assert told == published[opened_ms // MINUTE_MS]
        assert set(published) <= {opened_ms // MINUTE_MS for opened_ms in flows}
