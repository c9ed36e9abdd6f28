"""Each closed candle has the next number of its symbol and timeframe, in the record that closed it."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.times import MINUTE_MS
from instruments.catalogue import catalogue
from market.engine.engine import NEVER_MS, Engine
from market.engine.instrument_state import InstrumentState
from market.models import LastQuote
from market.prices.candles import TIMEFRAMES, PriceBar
from market.prices.history import CandleRow
from market.prices.quotes import Prices
from market.prices.records import (
    AnyRecord,
    CandlesEnded,
    ClosedCandle,
    JournalRecord,
    MarketClosed,
    Tick,
    TickAccepted,
    closed_by,
)
from market.runtime import given_numbers
from market.streams.protocol import messages
from tests.factories import make_calendar, make_instrument
from tests.market.running import flush, restarted
from tests.market.ticking import HOUR_MS, NOON_MS

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _instrument(transactional_db: None) -> None:
    make_instrument("EURUSD", source="push", stale_after_s=3_600)


@pytest.fixture
def engine() -> Engine:
    return Engine(Prices("bid"))


def accept(engine: Engine, at_ms: int, price: float = 1.1) -> None:
    assert engine.accept(Tick("EURUSD", price, price + 0.0002, at_ms, 1.0), at_ms, "push") is None


def state_of(engine: Engine) -> InstrumentState:
    return engine.instrument(catalogue.get("EURUSD"), NOON_MS)


def closed(records: list[AnyRecord]) -> list[ClosedCandle]:
    return [candle for record in records for candle in closed_by(record)]


def of(timeframe: str, candles: list[ClosedCandle]) -> list[ClosedCandle]:
    return [candle for candle in candles if candle.timeframe == timeframe]


def row(candle: ClosedCandle) -> CandleRow:
    return CandleRow(candle.opened_ms, candle.open, candle.high, candle.low, candle.close, candle.volume)


def test_streams_offer_the_timeframes_that_there_are() -> None:
    assert tuple(TIMEFRAMES) == messages.TIMEFRAMES


def test_tick_carries_what_it_closed_finest_first(engine: Engine) -> None:
    accept(engine, NOON_MS - 30_000)
    accept(engine, NOON_MS + 1_000)

    first, second = engine.records
    assert closed_by(first) == []
    assert [(candle.timeframe, candle.seq) for candle in closed_by(second)] == [
        *(("1m", 1), ("5m", 1), ("15m", 1), ("1h", 1), ("4h", 1))
    ]
    assert {candle.ended_ms for candle in closed_by(second)} == {NOON_MS}


def test_minute_of_a_history_is_numbered_before_the_first_quote(engine: Engine) -> None:
    minutes = [PriceBar(NOON_MS + number * MINUTE_MS, *(1.0,) * 4, 1.0, 1.1, 1.1) for number in range(3)]
    engine.backfill("EURUSD", minutes, "bid", NOON_MS + HOUR_MS)

    assert [candle.seq for candle in of("1m", closed(engine.records))] == [1, 2, 3]
    assert flush(engine)
    assert state_of(restarted()).candle_seqs == state_of(engine).candle_seqs != {}


def test_missed_minute_sends_its_closed_hour_again(engine: Engine) -> None:
    accept(engine, NOON_MS - 3 * MINUTE_MS)
    accept(engine, NOON_MS + 30_000)
    engine.keep_time(NOON_MS + MINUTE_MS + 3_000)
    hour = of("1h", closed(engine.records))
    engine.records.clear()
    state_of(engine).minute_ends_ms = 0
    missed = PriceBar(NOON_MS + MINUTE_MS, 1.1, 1.3, 1.1, 1.2, 5.0, 1.3, 1.3)
    facts = catalogue.get("EURUSD")
    engine.prices.history(facts).halt(NOON_MS + 4 * HOUR_MS)
    engine.backfill("EURUSD", [missed], "bid", NOON_MS + 5 * HOUR_MS)

    (again,) = of("1h", closed(engine.records))
    assert (hour[0].opened_ms, hour[0].seq) == (NOON_MS - HOUR_MS, 1)
    assert (again.opened_ms, again.high, again.volume) == (NOON_MS, 1.3, 6.0)
    assert row(again) == engine.prices.history(facts).last_row("1h")


def test_candle_ends_where_its_market_closes() -> None:
    calendar = make_calendar("short", "Mon-Sun 08:00-12:30")
    make_instrument("DAX", source="push", calendar=calendar)
    engine = Engine(Prices("bid"))
    at_ms = NOON_MS + 29 * MINUTE_MS
    engine.accept(Tick("DAX", 1.1, 1.2, at_ms, 1.0), at_ms, "push")
    engine.keep_time(NOON_MS + 31 * MINUTE_MS)

    ends = {candle.timeframe: candle.ended_ms for candle in closed(engine.records)}
    assert any(type(record) is MarketClosed for record in engine.records)
    assert ends == dict.fromkeys(TIMEFRAMES, NOON_MS + 30 * MINUTE_MS)


def test_series_that_ends_closes_its_candles_then_and_the_numbers_go_on(engine: Engine) -> None:
    accept(engine, NOON_MS)
    state = state_of(engine)
    engine.apply_if_it_closes(state, MarketClosed("EURUSD", NEVER_MS), NOON_MS + 20_000)
    before = dict(state.candle_seqs)
    state.begin(engine.checkpoints([state])[state.facts.id]._replace(candle_seqs={}), state.choice, NOON_MS)

    assert {candle.ended_ms for candle in closed(engine.records)} == {NOON_MS + 20_000}
    assert state.candle_seqs == before == dict.fromkeys(TIMEFRAMES, 1)


def test_successor_goes_on_from_the_numbers_that_were_stored_or_given_since(engine: Engine) -> None:
    accept(engine, NOON_MS)
    assert flush(engine)
    # Time alone closes the candle.
    engine.keep_time(NOON_MS + MINUTE_MS + 3_000)
    assert flush(engine)
    assert given_numbers(restarted()) == {"EURUSD": (1, 0), "EURUSD/1m": (1, 0)}
    engine.records.clear()
    for minute in (2, 3):
        accept(engine, NOON_MS + minute * MINUTE_MS)
    after = restarted()
    for record in engine.records:
        after.repeat(record, NOON_MS)
    accept(after, NOON_MS + 4 * MINUTE_MS)

    assert [candle.seq for candle in of("1m", closed(after.records))] == [3]
    assert after.changed.keys() == {"EURUSD"}
    # A database of the version before has none.
    LastQuote.objects.update(candle_seqs=None)
    former = restarted()
    for minute in (1, 2):
        accept(former, NOON_MS + minute * MINUTE_MS)
    assert state_of(former).candle_seqs == {"1m": 1}


def test_minutes_that_were_made_meanwhile_are_told_as_closed(engine: Engine) -> None:
    accept(engine, NOON_MS - MINUTE_MS)
    engine.keep_time(NOON_MS + 3_000)
    facts = catalogue.get("EURUSD")
    before, engine.prices.histories["EURUSD"] = engine.prices.history(facts), Prices("bid").history(facts)
    fresh = engine.prices.history(facts)
    for timeframe in ("1m", "5m"):
        known = before.last_row(timeframe)
        assert known is not None
        fresh.restore(timeframe, PriceBar(*known, 1.2, 1.2))
    for number in range(5):
        fresh.restore("1m", PriceBar(NOON_MS + number * MINUTE_MS, *(1.5,) * 4, 1.0, 1.6, 1.6))
    fresh.restore("5m", PriceBar(NOON_MS, *(1.5,) * 4, 5.0, 1.6, 1.6))
    hour = before.last_row("1h")
    assert hour is not None
    fresh.restore("1h", PriceBar(*hour._replace(close=1.0), 1.2, 1.2))
    engine.records.clear()
    engine.tell_filled(state_of(engine), before, NOON_MS + 5 * MINUTE_MS)

    (record,) = engine.records
    assert [(candle.timeframe, candle.seq) for candle in closed_by(record)] == [
        *(("1h", 2), ("1m", 2), ("1m", 3), ("1m", 4), ("1m", 5), ("1m", 6), ("5m", 2))
    ]


class OlderTick(JournalRecord, tag=0):
    bid: float
    ask: float
    time_ms: int
    volume: float
    seq: int


class OlderEnd(JournalRecord, tag=1):
    until_ms: int


def test_older_processes_read_records_without_what_they_closed_and_theirs_closed_nothing(
    engine: Engine,
) -> None:
    accept(engine, NOON_MS)
    accept(engine, NOON_MS + MINUTE_MS)
    engine.keep_time(NOON_MS + 2 * MINUTE_MS + 3_000)
    sent = msgspec.msgpack.encode(engine.records)

    read = msgspec.msgpack.decode(sent, type=list[OlderTick | OlderEnd])
    assert [type(record) for record in read] == [OlderTick, OlderTick, OlderEnd]
    assert msgspec.msgpack.decode(sent, type=list[AnyRecord]) == engine.records
    older = [OlderTick("EURUSD", 1.1, 1.2, NOON_MS, 1.0, 1), OlderEnd("EURUSD", NOON_MS)]
    theirs = msgspec.msgpack.decode(msgspec.msgpack.encode(older), type=list[AnyRecord])
    assert theirs == [TickAccepted("EURUSD", 1.1, 1.2, NOON_MS, 1.0, 1), CandlesEnded("EURUSD", NOON_MS)]
    assert closed(theirs) == []


FORMER = (
    *("symbol", "bid", "ask", "time_ms", "volume", "seq", "flow_seq", "bid_volume", "ask_volume"),
    *("cumulative_delta", "price", "numbering", "source_seq", "accepted_ms", "source", "side", "closed"),
)


def test_what_the_version_before_reads_of_a_tick_keeps_its_place() -> None:
    assert TickAccepted.__struct_fields__[: len(FORMER)] == FORMER


steps = st.lists(
    st.tuples(st.sampled_from(["tick", "time", "alive", "kill"]), st.integers(1, 400)),
    min_size=1,
    max_size=40,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps)
def test_numbers_have_no_holes_and_the_last_of_each_is_what_is_answered(steps: list[tuple[str, int]]) -> None:
    engine, at_ms, journal = Engine(Prices("bid")), NOON_MS, list[AnyRecord]()
    for kind, seconds in steps:
        at_ms += seconds * 1_000
        if kind == "tick":
            accept(engine, at_ms, 1 + seconds / 1_000)
        elif kind == "alive":
            engine.take("push", [], at_ms)
        elif kind == "time":
            engine.keep_time(at_ms)
        else:
            journal += engine.records
            engine = Engine(Prices("bid"))
            for record in journal:
                engine.repeat(record, at_ms)
    found, history = closed([*journal, *engine.records]), engine.prices.history(catalogue.get("EURUSD"))
    for timeframe in TIMEFRAMES:
        own = of(timeframe, found)
        assert [candle.seq for candle in own] == [*range(1, len(own) + 1)]
        last = {candle.opened_ms: row(candle) for candle in own}
        assert list(last.values()) == history.rows(timeframe, 500, closed_only=True)
