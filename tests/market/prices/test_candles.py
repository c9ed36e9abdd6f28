"""Six intervals from ticks, through pauses, weekends, changes of the clocks and restarts."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from market.prices.candles import COARSER, TIMEFRAMES, CandleBuilder, PriceBar
from market.prices.records import Tick
from tests.market.ticking import (
    GRACE_MS,
    HOURS,
    Rows,
    TickSequence,
    aggregate,
    candles_of,
    copy,
    drive,
    expected,
    keep,
    ms,
    tick_sequences,
)


def ticks_at(hours: str, *ticks: tuple[str, float]) -> TickSequence:
    made = [Tick("X", bid, bid + 0.01, ms(at), 1.0) for at, bid in ticks]
    return TickSequence(HOURS[hours], made, [300] * len(made))


@settings(max_examples=150)
@given(tick_sequences())
def test_every_interval_is_what_its_ticks_say(sequence: TickSequence) -> None:
    assert candles_of(sequence) == expected(sequence.ticks)


@settings(max_examples=60)
@given(tick_sequences(), st.sampled_from(list(COARSER)))
def test_every_interval_is_the_aggregate_of_its_minutes(sequence: TickSequence, timeframe: str) -> None:
    rows = candles_of(sequence)
    minutes = [rows[key] for key in sorted(rows) if key[0] == "1m"]

    coarser = [rows[key] for key in sorted(rows) if key[0] == timeframe]

    assert coarser == list(aggregate(minutes, TIMEFRAMES[timeframe]))


@settings(max_examples=60)
@given(tick_sequences())
def test_low_is_lowest_and_high_is_highest(sequence: TickSequence) -> None:
    for candle in candles_of(sequence).values():
        assert candle.low <= min(candle.open, candle.close) <= max(candle.open, candle.close) <= candle.high
        assert candle.ask_low <= candle.ask_high


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


def test_four_hours_go_on_after_the_daily_pause() -> None:
    sequence = ticks_at(
        "metals", ("2026-11-18T21:10", 5.0), ("2026-11-18T21:50", 7.0), ("2026-11-18T23:30", 4.0)
    )

    rows = candles_of(sequence)

    four_hours = rows["4h", ms("2026-11-18T20:00")]
    assert (four_hours.open, four_hours.high, four_hours.low, four_hours.close) == (5.0, 7.0, 4.0, 4.0)
    assert rows["1d", ms("2026-11-18")].volume == 3


def test_week_ends_with_the_market_and_not_with_the_day() -> None:
    sequence = ticks_at(
        "forex", ("2026-11-20T21:59:30", 5.0), ("2026-11-22T22:00", 6.0), ("2026-11-23T00:00", 7.0)
    )

    days = [opened_ms for timeframe, opened_ms in candles_of(sequence) if timeframe == "1d"]

    assert sorted(days) == [ms("2026-11-20"), ms("2026-11-22"), ms("2026-11-23")]


def test_year_ends_between_two_days() -> None:
    sequence = ticks_at("always", ("2026-12-31T23:59:59", 5.0), ("2027-01-01T00:00:00", 6.0))

    rows = candles_of(sequence)

    assert (rows["1d", ms("2026-12-31")].close, rows["1d", ms("2027-01-01")].open) == (5.0, 6.0)


def test_minutes_that_were_missed_are_added_to_the_hour_that_the_clock_had_closed() -> None:
    builder, rows, now_ms = CandleBuilder(), Rows(), ms("2026-11-20")
    ticks = [Tick("X", 5.0 + n, 5.1 + n, ms("2026-11-18T12:00") + n * 20_000, 1.0) for n in range(40)]
    for tick in ticks:
        keep(rows, builder.add(tick.time_ms, tick.bid, tick.ask, tick.volume))
        if (tick.time_ms + 20_000) % 60_000 == 0:
            keep(rows, builder.close_until(now_ms))
    keep(rows, builder.close_until(now_ms))

    assert rows == expected(ticks)


def test_hour_that_is_closed_never_forms_again() -> None:
    builder = CandleBuilder()
    list(builder.add(ms("2026-11-18T12:00"), 5.0, 5.1, 1.0))
    list(builder.close_until(ms("2026-11-20")))

    list(builder.add(ms("2026-11-18T12:01"), 6.0, 6.1, 1.0))

    assert (builder.forming("1m") is None, builder.forming("1h")) == (False, None)


def test_minute_that_was_missed_changes_nothing_of_those_that_are_known() -> None:
    builder = CandleBuilder()
    list(builder.add(ms("2026-11-18T12:00"), 5.0, 5.1, 1.0))
    list(builder.add(ms("2026-11-18T12:03"), 6.0, 6.1, 1.0))
    minutes = [PriceBar(ms(f"2026-11-18T12:0{n}"), 9.0, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0) for n in range(4)]

    closed = [row for minute in minutes for row in builder.refill(minute)]

    assert closed == [("1m", minutes[1]), ("1m", minutes[2])]
    assert builder.latest("1m") == PriceBar(ms("2026-11-18T12:03"), 6.0, 6.0, 6.0, 6.0, 1.0, 6.1, 6.1)


def test_minute_that_was_missed_stays_as_it_was_given() -> None:
    builder = CandleBuilder()
    given = PriceBar(ms("2026-11-18T12:00"), 5.0, 5.0, 5.0, 5.0, 0.1 + 0.2, 5.0, 5.0)

    ((_, closed), *_) = builder.refill(given)

    assert (given.volume, closed.volume) == (0.1 + 0.2, 0.3)


def test_flat_candle_repeats_the_last_price_and_has_no_volume() -> None:
    builder = CandleBuilder()
    list(builder.add(ms("2026-11-18T12:00:10"), 5.0, 5.1, 1.0))
    list(builder.add(ms("2026-11-18T12:00:20"), 6.0, 6.3, 1.0))
    list(builder.close_until(ms("2026-11-18T12:02")))

    flat = dict(builder.fill(ms("2026-11-18T12:01")))["1m"]

    assert flat == PriceBar(ms("2026-11-18T12:01"), 6.0, 6.0, 6.0, 6.0, 0.0, 6.3, 6.3)


def test_nothing_is_flat_before_the_first_tick() -> None:
    assert list(CandleBuilder().fill(ms("2026-11-18T12:01"))) == []


def test_flat_candle_never_replaces_one_with_ticks() -> None:
    builder = CandleBuilder()
    list(builder.add(ms("2026-11-18T12:00:10"), 5.0, 5.1, 1.0))
    list(builder.close_until(ms("2026-11-18T12:01")))

    assert list(builder.fill(ms("2026-11-18T12:00"))) == []


def test_stored_volumes_add_up_without_binary_noise() -> None:
    sequence = TickSequence(
        HOURS["always"], [Tick("X", 1, 1, ms("2026-11-18") + n * 60_000, 0.1) for n in range(30)], [0] * 30
    )

    assert candles_of(sequence)["1h", ms("2026-11-18")].volume == 3.0


def test_resumed_minute_that_was_closed_since_is_not_formed_again() -> None:
    builder = CandleBuilder()
    minute = PriceBar(ms("2026-11-18T12:00"), 5.0, 5.0, 5.0, 5.0, 9.0, 5.1, 5.1)
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
    builder, noon_ms = CandleBuilder(), ms("2026-11-18T12:00")
    list(builder.add(noon_ms, 1.0, 1.1, 1.0))
    written = dict(builder.halt(noon_ms + TIMEFRAMES["1d"]))["1h"]
    before = copy(written)

    assert ("1h", noon_ms) in list(builder.reopen(noon_ms + TIMEFRAMES["1m"]))
    list(builder.add(noon_ms + TIMEFRAMES["1m"], 2.0, 2.1, 1.0))
    again = dict(builder.halt(noon_ms + TIMEFRAMES["1d"]))["1h"]

    assert (written, again.high) == (before, 2.0)
