"""Six intervals from ticks, through pauses, weekends, changes of the clocks and restarts."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from market.prices.candles import TIMEFRAMES, CandleBuilder, PriceBar
from market.prices.records import Tick
from tests.market.ticking import (
    GRACE_MS,
    Rows,
    TickSequence,
    candles_of,
    copy,
    drive,
    expected,
    keep,
    ms,
    tick_sequences,
)

NOON_MS, NEXT_DAY_MS = ms("2026-11-18T12:00"), ms("2026-11-20")


def at(second: int) -> int:
    return NOON_MS + second * 1000


def builder_of(*ticks: tuple[int, float, float]) -> CandleBuilder:
    """Ticks as (seconds after noon, bid, ask)."""
    builder = CandleBuilder()
    for second, bid, ask in ticks:
        list(builder.add(at(second), bid, ask, 1.0))
    return builder


@settings(max_examples=150)
@given(tick_sequences())
def test_every_interval_is_what_its_ticks_say(sequence: TickSequence) -> None:
    assert candles_of(sequence) == expected(sequence.ticks)


@settings(max_examples=60)
@given(tick_sequences(), st.data())
def test_restart_at_any_point_changes_nothing(sequence: TickSequence, data: st.DataObject) -> None:
    """Only what is stored survives: closed candles, the forming minute and the last price."""
    split = data.draw(st.integers(1, len(sequence.ticks)))
    before, after, rows = CandleBuilder(), CandleBuilder(), Rows()
    drive(before, sequence, 0, split, rows)
    forming = before.forming("1m")
    minutes = [candle for (timeframe, _), candle in sorted(rows.items()) if timeframe == "1m"]
    last_day = minutes[-1].opened_ms // TIMEFRAMES["1d"] if minutes else 0

    for minute in minutes:
        if minute.opened_ms // TIMEFRAMES["1d"] == last_day:
            after.resume(copy(minute))
    after.resume_forming(forming and copy(forming), 1.0, 1.0)
    drive(after, sequence, split, len(sequence.ticks), rows)
    keep(rows, after.close_until(sequence.ticks[-1].time_ms + 2 * TIMEFRAMES["1d"]))

    assert rows == expected(sequence.ticks)


@settings(max_examples=60)
@given(tick_sequences())
def test_closed_candle_is_never_changed_in_place(sequence: TickSequence) -> None:
    """It may be waiting for the database in another thread."""
    builder, seen = CandleBuilder(), list[tuple[PriceBar, PriceBar]]()
    for tick, after_ms in zip(sequence.ticks, sequence.clock_after_ms, strict=True):
        closed = [*builder.add(tick.time_ms, tick.bid, tick.ask, tick.volume)]
        closed += builder.close_until(tick.time_ms + after_ms - GRACE_MS)
        seen += [(candle, copy(candle)) for _, candle in closed]

    assert all(candle == copied for candle, copied in seen)


def test_minutes_that_were_missed_are_added_to_the_hour_that_the_clock_had_closed() -> None:
    builder, rows = CandleBuilder(), Rows()
    ticks = [Tick("X", 5.0 + n, 5.1 + n, at(n * 20), 1.0) for n in range(40)]
    for tick in ticks:
        keep(rows, builder.add(tick.time_ms, tick.bid, tick.ask, tick.volume))
        if (tick.time_ms + 20_000) % 60_000 == 0:
            keep(rows, builder.close_until(NEXT_DAY_MS))
    keep(rows, builder.close_until(NEXT_DAY_MS))

    assert rows == expected(ticks)


def test_hour_that_is_closed_never_forms_again() -> None:
    builder = builder_of((0, 5.0, 5.1))
    list(builder.close_until(NEXT_DAY_MS))
    list(builder.add(at(60), 6.0, 6.1, 1.0))
    assert (builder.forming("1m") is None, builder.forming("1h")) == (False, None)


def test_minute_that_was_missed_changes_nothing_of_those_that_are_known() -> None:
    builder = builder_of((0, 5.0, 5.1), (180, 6.0, 6.1))
    minutes = [PriceBar(at(60 * n), 9.0, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0) for n in range(4)]
    closed = [row for minute in minutes for row in builder.refill(minute)]
    assert closed == [("1m", minutes[1]), ("1m", minutes[2])]
    assert builder.latest("1m") == PriceBar(at(180), 6.0, 6.0, 6.0, 6.0, 1.0, 6.1, 6.1)


def test_minute_that_was_missed_stays_as_it_was_given() -> None:
    given = PriceBar(NOON_MS, 5.0, 5.0, 5.0, 5.0, 0.1 + 0.2, 5.0, 5.0)
    ((_, closed), *_) = CandleBuilder().refill(given)
    assert (given.volume, closed.volume) == (0.1 + 0.2, 0.3)


def test_flat_candle_repeats_the_last_price_and_never_replaces_one_with_ticks() -> None:
    assert list(CandleBuilder().fill(at(60))) == []
    builder = builder_of((10, 5.0, 5.1), (20, 6.0, 6.3))
    list(builder.close_until(at(120)))
    flat = dict(builder.fill(at(60)))["1m"]
    assert flat == PriceBar(at(60), 6.0, 6.0, 6.0, 6.0, 0.0, 6.3, 6.3)
    assert list(builder.fill(NOON_MS)) == []


def test_resumed_minute_that_was_closed_since_is_not_formed_again() -> None:
    builder = CandleBuilder()
    minute = PriceBar(NOON_MS, 5.0, 5.0, 5.0, 5.0, 9.0, 5.1, 5.1)
    builder.resume(copy(minute))
    builder.resume_forming(copy(minute), 5.0, 5.1)
    assert builder.forming("1m") is None


def test_closed_minute_takes_nothing_more() -> None:
    """It may be on its way to the database, in a thread."""
    builder = CandleBuilder()
    assert list(builder.add(0, 1.0, 1.1, 1.0)) == []
    assert builder.extend(1, 1.2, 1.3, 1.0)
    ((_, minute),) = builder.close_until(60_000)
    assert not builder.extend(2, 1.4, 1.5, 1.0)
    assert list(builder.add(2, 1.4, 1.5, 1.0)) == []
    assert (minute.high, builder.latest("1m")) == (1.2, minute)


def test_tick_that_extends_a_minute_keeps_nothing_waiting_that_ended_before() -> None:
    """Stored minutes, a pause, and the minute that formed when the process ended."""
    builder = CandleBuilder()
    builder.resume(PriceBar(0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.1, 1.1))
    builder.resume_forming(PriceBar(600_000, 2.0, 2.0, 2.0, 2.0, 1.0, 2.1, 2.1), 2.0, 2.1)
    assert not builder.extend(600_001, 2.0, 2.1, 1.0)
    assert [timeframe for timeframe, _ in builder.add(600_001, 2.0, 2.1, 1.0)] == ["5m"]
    assert builder.extend(600_002, 2.0, 2.1, 1.0)


def test_interval_that_forms_again_leaves_alone_what_is_being_written() -> None:
    builder = builder_of((0, 1.0, 1.1))
    written = dict(builder.halt(NEXT_DAY_MS))["1h"]
    before = copy(written)
    assert ("1h", NOON_MS) in list(builder.reopen(at(60)))
    list(builder.add(at(60), 2.0, 2.1, 1.0))
    assert (written, dict(builder.halt(NEXT_DAY_MS))["1h"].high) == (before, 2.0)
