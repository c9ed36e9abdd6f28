"""The engine's ticks and clock, without tasks and without writing."""

from __future__ import annotations

from math import nan
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.times import MINUTE_MS
from instruments.catalogue import catalogue
from instruments.models import Instrument
from market.engine.engine import CLOSE_GRACE_MS as GRACE_MS
from market.engine.engine import Engine
from market.prices.candles import COARSER, TIMEFRAMES
from market.prices.quotes import Prices
from market.prices.records import Tick
from market.store.checkpoints import Checkpoint
from tests.factories import make_calendar, make_instrument
from tests.market.ticking import HOUR_MS, NOON_MS, ms

pytestmark = pytest.mark.django_db
GOOD = Tick("EURUSD", 1.08, 1.0802, NOON_MS, 1.0)


@pytest.fixture(autouse=True)
def instrument() -> Instrument:
    return make_instrument("EURUSD")


@pytest.fixture
def metal() -> Instrument:
    """Closed from 22:00 to 23:00."""
    return make_instrument("XAUUSD", calendar=make_calendar("metals", "Sun-Thu 23:00-22:00"))


def make_engine(*ticks: Tick) -> Engine:
    engine = Engine(Prices("bid"))
    for tick in ticks:
        assert engine.accept(tick, NOON_MS) is None
    return engine


def changed(**changes: Any) -> Tick:
    return msgspec.structs.replace(GOOD, **changes)


def bars(
    engine: Engine, timeframe: str = "1m", symbol: str = "EURUSD", **wanted: Any
) -> list[dict[str, Any]]:
    options = {"closed_only": True} | wanted
    history = engine.prices.history(catalogue.get(symbol))
    ohlcv = history.bars(timeframe, 500, **options).ohlcv
    return msgspec.json.decode(b"[" + ohlcv + b"]", type=list[dict[str, Any]])


def closing_times(engine: Engine, **wanted: Any) -> list[str]:
    return [candle["time"][11:16] for candle in bars(engine, **wanted)]


def closed_timeframes(engine: Engine, symbol: str) -> set[str]:
    history = engine.prices.history(catalogue.get_any(symbol))
    return {name for name in TIMEFRAMES if history.last_closed_ms(name) is not None}


@pytest.mark.parametrize(
    ("tick", "reason"),
    [
        (changed(symbol="NOPE"), "unknown_symbol"),
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
    engine = make_engine(GOOD)
    before = bars(engine, closed_only=False)

    assert engine.accept(tick, NOON_MS) == reason

    quote = engine.prices.quotes.get("EURUSD")
    assert quote is not None
    assert dict(engine.feed_state("push").refused) == {reason: 1}
    assert (quote.bid, quote.ask, quote.time_ms) == (1.08, 1.0802, NOON_MS)
    assert bars(engine, closed_only=False) == before


def test_tick_of_an_inactive_instrument_is_unknown(instrument: Instrument) -> None:
    Instrument.objects.filter(pk=instrument.pk).update(active=False)
    catalogue.load_now()

    assert make_engine().accept(GOOD, NOON_MS) == "unknown_symbol"


def test_tick_after_the_close_is_refused(metal: Instrument) -> None:
    closed_ms = ms("2026-11-18T22:00")

    assert make_engine().accept(Tick("XAUUSD", 5.0, 5.1, closed_ms, 1.0), closed_ms) == "market_closed"


def test_tick_for_a_minute_before_the_last_closed_one_is_too_late() -> None:
    engine = make_engine()
    engine.feed_state("push").heard(NOON_MS)
    engine.accept(GOOD, NOON_MS)
    for after_s in (60, 120, 180):
        engine.take("push", [], NOON_MS + after_s * 1000)
        engine.keep_time(NOON_MS + after_s * 1000)

    assert engine.accept(changed(time_ms=NOON_MS + 70_000), NOON_MS + 180_000) == "too_late"


@pytest.mark.parametrize(
    ("opened", "closes", "closed"),
    [
        ("2026-11-18T21:50", "2026-11-18T22:00", {"1m", "5m", "15m", "1h"}),
        ("2026-11-20T21:40", "2026-11-20T22:00", set(TIMEFRAMES)),
    ],
)
def test_market_that_closes_closes_what_ends_before_it_opens_again(
    metal: Instrument, opened: str, closes: str, closed: set[str]
) -> None:
    """From Sunday to Thursday there is but an hour's pause, and the day goes on."""
    engine = make_engine()
    engine.keep_time(ms(opened))
    engine.accept(Tick("XAUUSD", 5.0, 5.1, ms(opened), 1.0), ms(opened))

    engine.keep_time(ms(closes) + GRACE_MS)

    assert closed_timeframes(engine, "XAUUSD") == closed


def test_instrument_that_staff_take_out_closes_its_candles_when_they_end(instrument: Instrument) -> None:
    engine = make_engine(GOOD)
    Instrument.objects.filter(pk=instrument.pk).update(active=False)
    catalogue.load_now()

    engine.keep_time(NOON_MS + 5_000)
    at_once = closed_timeframes(engine, "EURUSD")
    engine.keep_time(NOON_MS + MINUTE_MS + GRACE_MS)

    assert (at_once, closed_timeframes(engine, "EURUSD")) == (set(), {"1m"})


def test_minutes_without_ticks_are_flat_while_the_source_is_alive() -> None:
    engine = make_engine()
    engine.keep_time(NOON_MS - MINUTE_MS)
    engine.take("push", [], NOON_MS - 1)
    engine.take("push", [GOOD], NOON_MS)
    for after_s in range(10, 191, 10):
        engine.take("push", [], NOON_MS + after_s * 1000)
        engine.keep_time(NOON_MS + after_s * 1000)

    first, *flat = bars(engine)

    assert [candle["time"][11:16] for candle in flat] == ["12:01", "12:02"]
    for candle in flat:
        assert {candle[name] for name in ("open", "high", "low", "close")} == {first["close"]}
        assert candle["volume"] == 0


def test_tick_right_after_a_quiet_minute_does_not_hide_it() -> None:
    engine = make_engine()
    engine.take("push", [], NOON_MS - 1)
    engine.take("push", [GOOD], NOON_MS)
    engine.take("push", [], NOON_MS + 50_000)
    engine.keep_time(NOON_MS + 59_900)
    engine.take("push", [], NOON_MS + 100_000)

    engine.take("push", [changed(time_ms=NOON_MS + 120_050)], NOON_MS + 120_060)
    engine.keep_time(NOON_MS + 120_150)

    assert closing_times(engine) == ["12:00", "12:01"]


def test_nothing_is_flat_while_the_source_is_silent() -> None:
    engine = make_engine()
    engine.take("push", [], NOON_MS - 1)
    engine.take("push", [GOOD], NOON_MS)
    for after_s in range(10, 301, 10):
        engine.keep_time(NOON_MS + after_s * 1000)

    assert closing_times(engine) == ["12:00"]


def test_successor_knows_the_numbers_of_ticks_that_were_not_written_yet() -> None:
    engine, successor = make_engine(), make_engine()
    numbered = changed(source_seq=7)
    engine.take("push:desk", [numbered], NOON_MS)
    for record in engine.records:
        successor.repeat(record, NOON_MS)

    assert successor.take("push:desk", [numbered], NOON_MS) == ["duplicate"]
    assert bars(successor, closed_only=False)[0]["volume"] == 1


def test_nothing_is_flat_before_the_source_was_heard() -> None:
    engine = make_engine()
    facts = catalogue.get("EURUSD")
    engine.resume({"EURUSD": Checkpoint(GOOD, None)}, NOON_MS)
    engine.prices.history(facts).builder.resume_forming(None, GOOD.bid, GOOD.ask)
    for after_s in range(0, 301, 10):
        engine.keep_time(NOON_MS + after_s * 1000)

    assert closing_times(engine) == []


def test_one_of_several_that_push_may_be_the_source_that_is_alive() -> None:
    engine = make_engine()
    for after_s in range(0, 311, 10):
        at_ms = NOON_MS + after_s * 1000
        engine.take("push:desk", [GOOD] if after_s == 10 else [], at_ms)
        engine.keep_time(at_ms)
    engine.feed_state("push:desk").lost()
    for after_s in range(310, 611, 10):
        engine.keep_time(NOON_MS + after_s * 1000)

    assert closing_times(engine) == ["12:00", "12:01", "12:02", "12:03", "12:04"]


def test_nothing_is_flat_for_the_time_in_which_the_source_was_lost() -> None:
    engine = make_engine()
    engine.take("push", [], NOON_MS - 1)
    engine.take("push", [GOOD], NOON_MS)
    engine.keep_time(NOON_MS + 60_000)
    engine.feed_state("push").lost()
    for after_s in (130, 180, 240, 290, 302):
        engine.take("push", [], NOON_MS + after_s * 1000)
        engine.keep_time(NOON_MS + after_s * 1000)

    assert closing_times(engine) == ["12:00", "12:03", "12:04"]


def test_nothing_is_flat_while_the_market_is_closed(metal: Instrument) -> None:
    engine, start_ms = make_engine(), ms("2026-11-18T21:57")
    engine.take("push", [], start_ms - 1)
    engine.keep_time(start_ms)
    engine.take("push", [Tick("XAUUSD", 5.0, 5.1, start_ms, 1.0)], start_ms)
    for at_ms in range(start_ms, start_ms + 66 * MINUTE_MS, 15_000):
        engine.take("push", [], at_ms)
        engine.keep_time(at_ms)

    times = closing_times(engine, symbol="XAUUSD")

    assert times == ["21:57", "21:58", "21:59", "23:00", "23:01"]


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(0, 25 * 60), st.integers(1, 900)), min_size=1, max_size=12),
    st.integers(1, 50),
)
def test_minutes_have_no_hole_and_coarser_candles_hold_their_flat_ones(
    moves: list[tuple[int, int]], clock_s: int
) -> None:
    engine, at_ms = Engine(Prices("bid")), NOON_MS
    engine.take("push", [], NOON_MS)
    engine.keep_time(NOON_MS)
    for gap_s, points in moves:
        for clock_ms in range(at_ms, at_ms + gap_s * 1000, clock_s * 1000):
            engine.take("push", [], clock_ms)
            engine.keep_time(clock_ms)
        at_ms += gap_s * 1000
        engine.take("push", [Tick("EURUSD", points / 100, points / 100, at_ms, 1.0)], at_ms)

    minutes = bars(engine, closed_only=False)
    times = [ms(candle["time"][:19]) for candle in minutes]
    assert times == list(range(times[0], times[0] + len(times) * MINUTE_MS, MINUTE_MS))
    assert times[-1] == at_ms - at_ms % MINUTE_MS
    for timeframe, span_ms in COARSER.items():
        for candle in bars(engine, timeframe, closed_only=False):
            opened_ms = ms(candle["time"][:19])
            own = [
                m for m, time in zip(minutes, times, strict=True) if opened_ms <= time < opened_ms + span_ms
            ]
            assert candle["open"] == own[0]["open"]
            assert candle["close"] == own[-1]["close"]
            assert candle["high"] == max(minute["high"] for minute in own)
            assert candle["low"] == min(minute["low"] for minute in own)
            assert candle["volume"] == sum(minute["volume"] for minute in own)


def test_candles_of_the_mid_where_that_is_set() -> None:
    engine = Engine(Prices("mid"))
    engine.accept(changed(bid=1.08, ask=1.081), NOON_MS)

    assert bars(engine, closed_only=False)[0]["close"] == 1.0805


def test_hour_ends_with_the_clock_though_no_tick_comes() -> None:
    engine = make_engine(GOOD)

    engine.keep_time(NOON_MS + HOUR_MS + GRACE_MS)

    assert [candle["time"][11:16] for candle in bars(engine, "1h")] == ["12:00"]


def test_number_of_an_absorption_signal_that_time_brought_is_checkpointed() -> None:
    Instrument.objects.update(order_flow_source="trades")
    catalogue.load_now()
    engine = make_engine()
    for window in range(62):
        size = 500.0 if window == 61 else 1.0 + window % 2
        trade = changed(time_ms=NOON_MS + window * 5_000, volume=size, side=-1, price=1.08)
        assert engine.accept(trade, NOON_MS + window * 5_000) is None
    engine.changed.clear()

    engine.keep_time(NOON_MS + 62 * 5_000 + GRACE_MS)

    state = engine.instruments["EURUSD"]
    assert state.flow_seq == 63
    assert [made.flow_seq for made in engine.checkpoints(engine.changed.values()).values()] == [63]


def test_a_tick_has_the_digits_of_its_instrument() -> None:
    engine = make_engine(changed(bid=1.0800049, ask=1.0802051))
    (taken,) = engine.records
    assert (taken.bid, taken.ask) == (1.08, 1.08021)  # type: ignore[union-attr]
