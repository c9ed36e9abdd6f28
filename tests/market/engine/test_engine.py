"""The engine's ticks and clock, and what it says of itself."""

from __future__ import annotations

import asyncio
from math import nan
from typing import Any

import msgspec
import pytest

from core.threads import in_thread
from core.times import MINUTE_MS
from instruments.catalogue import catalogue
from instruments.models import Instrument
from market.engine.engine import CLOSE_GRACE_MS, Engine
from market.engine.status import EngineStatus, read_status, status_of
from market.prices.candles import TIMEFRAMES
from market.prices.history import CandleRow
from market.prices.quotes import Prices
from market.prices.records import AnyRecord, StandingQuote, StatusRecord, Tick, TickAccepted
from market.store.lease import Lease
from tests.factories import make_calendar, make_instrument
from tests.market.running import make_runner
from tests.market.ticking import HOUR_MS, NOON_MS, ms
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.django_db
GOOD = Tick("EURUSD", 1.08, 1.0802, NOON_MS, 1.0)


@pytest.fixture(autouse=True)
def instrument() -> Instrument:
    return make_instrument("EURUSD")


def make_engine(*ticks: Tick, candle_price: str = "bid") -> Engine:
    engine = Engine(Prices(candle_price))
    for tick in ticks:
        assert engine.accept(tick, NOON_MS) is None
    return engine


def changed(**changes: Any) -> Tick:
    return msgspec.structs.replace(GOOD, **changes)


def forming(engine: Engine) -> list[CandleRow]:
    return engine.prices.history(catalogue.get("EURUSD")).rows("1m", 500, closed_only=False)


def closed_timeframes(engine: Engine, symbol: str) -> set[str]:
    history = engine.prices.history(catalogue.get_any(symbol))
    return {name for name in TIMEFRAMES if history.last_closed_ms(name) is not None}


@pytest.mark.parametrize(
    ("tick", "reason"),
    [
        (changed(symbol="NOPE"), "unknown_symbol"),
        (changed(symbol="ASLEEP"), "unknown_symbol"),
        (changed(bid=nan), "not_finite"),
        (changed(bid=0.0), "not_positive"),
        (changed(bid=1.09), "crossed"),
        (changed(ask=1e11), "too_high"),
        (changed(time_ms=NOON_MS + 60_000), "future"),
        (changed(time_ms=NOON_MS - 1), "too_late"),
        (GOOD, "duplicate"),
    ],
)
def test_refused_tick_is_counted_and_the_last_good_value_stays(tick: Tick, reason: str) -> None:
    make_instrument("ASLEEP", active=False)
    engine = make_engine(GOOD)
    before = forming(engine)

    assert engine.accept(tick, NOON_MS) == reason

    quote = engine.prices.quotes.get("EURUSD")
    assert quote is not None
    assert dict(engine.feed_state("push").refused) == {reason: 1}
    assert (quote.bid, quote.ask, quote.time_ms) == (1.08, 1.0802, NOON_MS)
    assert forming(engine) == before


@pytest.mark.parametrize(
    ("opened", "closes", "closed"),
    [
        # From Sunday to Thursday there is but an hour's pause, and the day goes on.
        ("2026-11-18T21:50", "2026-11-18T22:00", {"1m", "5m", "15m", "1h"}),
        ("2026-11-20T21:40", "2026-11-20T22:00", set(TIMEFRAMES)),
    ],
)
def test_market_that_closes_closes_what_ends_before_it_opens_again(
    opened: str, closes: str, closed: set[str]
) -> None:
    make_instrument("XAUUSD", calendar=make_calendar("metals", "Sun-Thu 23:00-22:00"))
    engine = make_engine()
    engine.keep_time(ms(opened))
    engine.accept(Tick("XAUUSD", 5.0, 5.1, ms(opened), 1.0), ms(opened))

    engine.keep_time(ms(closes) + CLOSE_GRACE_MS)

    assert closed_timeframes(engine, "XAUUSD") == closed


def test_minute_of_many_instruments_closes_in_pieces() -> None:
    symbols = [make_instrument(symbol).symbol for symbol in ("USDCHF", "USDJPY")]
    engine = make_engine(GOOD, *(changed(symbol=symbol) for symbol in symbols))
    at_ms, closed = NOON_MS + MINUTE_MS + CLOSE_GRACE_MS, list[int]()
    engine.records.clear()

    while engine.keep_time(at_ms, most=1):
        closed.append(len(engine.records))

    assert closed == [1, 2]
    assert [record.symbol for record in engine.records] == sorted([GOOD.symbol, *symbols])


def test_instrument_that_staff_take_out_closes_its_candles_when_they_end(instrument: Instrument) -> None:
    engine = make_engine(GOOD)
    Instrument.objects.filter(pk=instrument.pk).update(active=False)
    catalogue.load_now()

    engine.keep_time(NOON_MS + 5_000)
    at_once = closed_timeframes(engine, "EURUSD")
    engine.keep_time(NOON_MS + MINUTE_MS + CLOSE_GRACE_MS)

    assert (at_once, closed_timeframes(engine, "EURUSD")) == (set(), {"1m"})


def test_candles_are_of_the_mid_where_that_is_set_and_ticks_have_the_digits_of_their_instrument() -> None:
    engine = make_engine(changed(bid=1.0800049, ask=1.0810051), candle_price="mid")
    (tick,) = engine.records

    assert isinstance(tick, TickAccepted)
    assert (tick.bid, tick.ask) == (1.08, 1.08101)
    assert forming(engine)[0].close == 1.08051


def test_number_of_an_absorption_signal_that_time_brought_is_checkpointed() -> None:
    Instrument.objects.update(order_flow_source="trades")
    catalogue.load_now()
    engine = make_engine()
    for window in range(62):
        size = 500.0 if window == 61 else 1.0 + window % 2
        trade = changed(time_ms=NOON_MS + window * 5_000, volume=size, side=-1, price=1.08)
        assert engine.accept(trade, NOON_MS + window * 5_000) is None
    engine.changed.clear()

    engine.keep_time(NOON_MS + 62 * 5_000 + CLOSE_GRACE_MS)

    assert [made.flow_seq for made in engine.checkpoints(engine.changed.values()).values()] == [63]


@pytest.mark.parametrize(
    ("later_ms", "delta"), [(0, 2), (12 * HOUR_MS - 1, 2), (12 * HOUR_MS + CLOSE_GRACE_MS, 0)]
)
def test_cumulative_delta_is_that_of_the_day(later_ms: int, delta: float) -> None:
    engine = make_engine()
    bids = enumerate([1.08, 1.0801, 1.0802])
    engine.take("push", [Tick("EURUSD", bid, bid + 0.0002, NOON_MS - 9 + n) for n, bid in bids], NOON_MS)

    (told,) = status_of(engine, NOON_MS + later_ms, "me", "e1").instruments

    assert (told.cumulative_delta, told.ticks) == (delta, 3)


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("clock")
def test_engine_without_the_lease_says_that_it_writes_nothing() -> None:
    async def first_word() -> EngineStatus:
        assert await in_thread(Lease().take) is not None
        told: asyncio.Future[EngineStatus] = asyncio.get_running_loop().create_future()

        def hear(records: list[AnyRecord]) -> None:
            for record in records:
                if isinstance(record, StatusRecord) and not told.done():
                    told.set_result(read_status(record.status))

        runner = make_runner(Engine(Prices("bid")), hear=hear)
        await runner.start()
        status = await asyncio.wait_for(told, PATIENCE_S)
        await runner.stop()
        return status

    status = asyncio.run(first_word())

    assert (status.writer, status.at_ms) == ("", NOON_MS)


@pytest.mark.parametrize("has_ticked", [True, False], ids=["forming", "none forms"])
def test_quote_that_stands_is_the_present_one_though_it_is_older_and_changes_nothing_closed(
    *, has_ticked: bool
) -> None:
    engine, at_ms = make_engine(GOOD), NOON_MS + MINUTE_MS + 10_000
    for heard_ms in range(NOON_MS, at_ms + 1, 10_000):
        engine.take("push", [], heard_ms)
    engine.keep_time(at_ms)
    if has_ticked:
        assert engine.accept(changed(time_ms=at_ms - 1), at_ms) is None
    first = forming(engine)[0]
    standing = StandingQuote("EURUSD", 1.09, 1.0902, NOON_MS + 20_000)
    of_yesterday = StandingQuote("EURUSD", 1.07, 1.0702, NOON_MS - 24 * HOUR_MS)

    assert engine.accept(of_yesterday, at_ms) == "too_late"
    assert engine.accept(standing, at_ms) is None
    assert engine.accept(changed(time_ms=NOON_MS + 20_000), at_ms) == "too_late"
    engine.take("push", [], at_ms + MINUTE_MS)
    engine.keep_time(at_ms + MINUTE_MS)

    quote = engine.prices.quotes["EURUSD"]
    assert (quote.bid, quote.time_ms) == (1.09, NOON_MS + 20_000)
    rows = forming(engine)
    assert rows[0] == first
    assert [row.close for row in rows[1:]] == [1.09]
    assert engine.feed_state("push").lag_ms == 0


def test_minute_that_a_connection_breaks_is_partial_and_one_of_a_feed_that_has_none_is_not() -> None:
    engine = make_engine(GOOD)
    minute = engine.prices.history(catalogue.get("EURUSD")).builder.forming("1m")
    assert minute is not None
    for source_ms, origin, is_partial in ((None, "push", False), (0, "kraken", False), (0, "push", True)):
        engine.feed_state(origin).source_ms = source_ms
        engine.breaks(origin, "EURUSD", NOON_MS + 5_000, is_over=True)
        assert minute.partial is is_partial
