"""What a start loads is taken all at once, and comes to the same as candle by candle."""

from __future__ import annotations

from copy import deepcopy
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from core.times import MINUTE_MS
from market.prices.candles import COARSER, TIMEFRAMES, CandleBuilder, Closed, PriceBar
from market.prices.history import KEPT, History, RollingDay
from market.prices.quotes import Prices
from market.prices.records import (
    AnyRecord,
    CandlesEnded,
    EmptyMinute,
    HistoryMinute,
    MarketClosed,
    TickAccepted,
)
from tests.market.ticking import NOON_MS, copy, make_facts

PRICES = st.floats(0.5, 2.0).map(lambda price: round(price, 7))
GAPS = st.sampled_from([1, 1, 1, 1, 2, 5, 14, 61, 240, 1_500])
Minutes = list[PriceBar]
FACTS = make_facts()


@st.composite
def stored_minutes(draw: st.DrawFn, most: int = 60) -> Minutes:
    gaps = draw(st.lists(GAPS, min_size=1, max_size=most))
    opened_ms, minutes = NOON_MS - 2_000 * MINUTE_MS, []
    for gap in gaps:
        opened_ms += gap * MINUTE_MS
        first, second, ask = draw(PRICES), draw(PRICES), draw(PRICES)
        low, high = min(first, second), max(first, second)
        volume, source = draw(st.floats(0, 9)), draw(st.sampled_from(["", "demo", "kraken", "kraken+demo"]))
        minutes.append(PriceBar(opened_ms, first, high, low, second, volume, high + ask, low + ask, source))
    return minutes


def copies(minutes: Minutes) -> Minutes:
    return [copy(minute) for minute in minutes]


def one_by_one(minutes: Minutes) -> CandleBuilder:
    builder = CandleBuilder()
    for minute in copies(minutes):
        builder.resume(minute)
    return builder


def at_once(minutes: Minutes) -> CandleBuilder:
    builder = CandleBuilder()
    builder.resume_all(copies(minutes))
    return builder


def known_of(builder: CandleBuilder) -> list[PriceBar | None]:
    return [ask(name) for name in TIMEFRAMES for ask in (builder.forming, builder.latest, builder.unfinished)]


def go_on(builder: CandleBuilder, minutes: Minutes) -> list[list[Closed]]:
    """What the clock, missed minutes and ticks close, in which order."""
    end_ms = minutes[-1].opened_ms + MINUTE_MS
    return [
        [(name, copy(candle)) for name, candle in closed]
        for closed in (
            builder.fill(end_ms),
            builder.refill(PriceBar(end_ms + MINUTE_MS, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, "late")),
            builder.add(end_ms + 5 * MINUTE_MS, 1.5, 1.6, 1.0),
            builder.halt(end_ms + 2 * TIMEFRAMES["1d"]),
        )
    ]


@settings(max_examples=100)
@given(stored_minutes())
def test_forming_candles_go_on_from_the_same(minutes: Minutes) -> None:
    alone, together = one_by_one(minutes), at_once(minutes)

    assert known_of(together) == known_of(alone)
    assert go_on(together, minutes) == go_on(alone, minutes)


@given(stored_minutes(20), stored_minutes(20))
def test_builder_that_knows_something_takes_minutes_one_by_one(known: Minutes, more: Minutes) -> None:
    later = [copy(minute) for minute in more if minute.opened_ms > known[-1].opened_ms]
    alone, together = at_once(known), at_once(known)

    together.resume_all(copies(later))
    for minute in copies(later):
        alone.resume(minute)

    assert known_of(together) == known_of(alone)


@settings(max_examples=100)
@given(stored_minutes(), st.integers(-5, 3_000))
def test_day_is_the_same(minutes: Minutes, later: int) -> None:
    alone, together = RollingDay(5), RollingDay(5)
    for minute in copies(minutes):
        alone.add(minute)
    together.add_all(copies(minutes))
    now_ms = minutes[-1].opened_ms + later * MINUTE_MS

    assert together.statistics(now_ms) == alone.statistics(now_ms)
    more = PriceBar(minutes[-1].opened_ms + 3 * MINUTE_MS, 1.0, 3.0, 0.1, 1.0, 2.0, 3.1, 0.2)
    for day in (alone, together):
        day.add(more)
    assert together.statistics(now_ms) == alone.statistics(now_ms)


@settings(max_examples=100)
@given(stored_minutes(8), st.integers(0, 30), st.booleans())
def test_time_closes_only_what_has_ended(minutes: Minutes, later: int, is_forming: bool) -> None:
    builder, end_ms = at_once(minutes), minutes[-1].opened_ms + MINUTE_MS
    if is_forming:
        list(builder.add(end_ms, 1.0, 1.1, 1.0))
    now_ms = end_ms + later * MINUTE_MS // 2

    has_ended = builder.has_ended(now_ms)

    assert has_ended == bool(list(builder.close_until(now_ms)))


def make_rows(number: int) -> list[PriceBar]:
    hour_ms = TIMEFRAMES["1h"]
    return [
        PriceBar(NOON_MS + place * hour_ms, price, price + 1 / 3, price - 1 / 7, price + 1 / 9, 2 / 3, 9, 0.1)
        for place in range(number)
        for price in (1 + place / 7,)
    ]


def restored(bars: list[PriceBar], *, together: bool) -> History:
    history = History(digits=4)
    if together:
        history.restore_all(
            "1h", [tuple(getattr(bar, name) for name in bar.__struct_fields__) for bar in bars]
        )
    else:
        for bar in bars:
            history.restore("1h", bar)
    return history


def test_candles_of_the_store_are_answered_alike() -> None:
    bars = make_rows(KEPT)
    alone, together = restored(bars, together=False), restored(bars, together=True)

    for count in (1, 7, KEPT):
        assert together.bars("1h", count, closed_only=False) == alone.bars("1h", count, closed_only=False)
        assert together.rows("1h", count, closed_only=True) == alone.rows("1h", count, closed_only=True)


def test_candles_that_close_later_follow_the_stored_ones() -> None:
    bars = make_rows(2 * KEPT + 30)
    alone, together = restored(bars[:KEPT], together=False), restored(bars[:KEPT], together=True)

    for bar in bars[KEPT:]:
        for history in (alone, together):
            history.restore("1h", bar)
        # Asked for now and then, so that some are encoded and some are not when the oldest go.
        if not bar.opened_ms // TIMEFRAMES["1h"] % 97:
            assert together.bars("1h", KEPT, closed_only=False) == alone.bars("1h", KEPT, closed_only=False)

    assert together.rows("1h", KEPT, closed_only=True) == alone.rows("1h", KEPT, closed_only=True)
    times = [row.opened_ms for row in together.rows("1h", KEPT, closed_only=True)]
    assert all(later - earlier == TIMEFRAMES["1h"] for earlier, later in pairwise(times))


def test_last_candle_again_takes_the_place_of_the_stored_one() -> None:
    *bars, last = make_rows(5)
    changed = PriceBar(last.opened_ms, 1.0, 8.0, 0.5, 7.0, 3.0, 8.0, 0.5)
    history = restored([*bars, last], together=True)
    history.bars("1h", 5, closed_only=False)

    history.restore("1h", changed)

    assert history.rows("1h", 1, closed_only=True)[0].close == 7.0
    assert b'"close":7.0' in history.bars("1h", 5, closed_only=True).ohlcv


def test_every_coarser_interval_is_among_those_compared() -> None:
    whole_days = [
        PriceBar(NOON_MS + place * MINUTE_MS, 1.0, 1.1, 0.9, 1.0, 1.0, 1.2, 1.0) for place in range(2_880)
    ]
    alone, together = one_by_one(whole_days), at_once(whole_days)

    assert {name for name in COARSER if together.latest(name)} == set(COARSER)
    assert known_of(together) == known_of(alone)


@st.composite
def came_meanwhile(draw: st.DrawFn) -> list[AnyRecord]:
    """Ticks of some minutes, some of them late, and what else the engine says of an instrument."""
    kinds = draw(
        st.lists(st.sampled_from([*["tick"] * 12, "late", "end", "empty", "halt", "old"]), max_size=50)
    )
    at_ms, records = NOON_MS, list[AnyRecord]()
    for seq, kind in enumerate(kinds, 1):
        at_ms += draw(st.sampled_from([0, 1, 900, 20_000, 61_000, 600_000]))
        minute_ms = at_ms - at_ms % MINUTE_MS
        bid, ask = draw(PRICES), draw(PRICES)
        if kind in ("tick", "late"):
            time_ms = at_ms - (30_000 if kind == "late" else 0)
            records.append(TickAccepted("EURUSD", bid, ask, time_ms, draw(st.floats(0, 9)), seq))
        elif kind == "end":
            records.append(CandlesEnded("EURUSD", minute_ms))
        elif kind == "empty":
            records.append(EmptyMinute("EURUSD", minute_ms - MINUTE_MS))
        elif kind == "halt":
            records.append(MarketClosed("EURUSD", at_ms + 5 * MINUTE_MS))
        else:
            minute = PriceBar(minute_ms - 2 * MINUTE_MS, bid, bid, bid, bid, 1.0, ask, ask, "late")
            records.append(HistoryMinute("EURUSD", minute, "bid"))
    return records


def seen(prices: Prices) -> list[object]:
    """All that may be asked of an instrument, bit for bit."""
    history, quote = prices.history(FACTS), prices.quotes.get("EURUSD")
    return [
        None if quote is None else (quote.whole, quote.seq),
        [history.rows(name, KEPT, closed_only=only) for name in TIMEFRAMES for only in (True, False)],
        known_of(history.builder),
        list(history.recent),
        history.day.statistics(NOON_MS + TIMEFRAMES["1d"] // 2, history.builder.forming("1m")),
        history.closed_until_ms,
    ]


@settings(max_examples=100)
@given(came_meanwhile(), st.sampled_from(["bid", "mid"]), st.data())
def test_records_taken_at_once_make_the_same_prices(
    records: list[AnyRecord], candle_price: str, data: st.DataObject
) -> None:
    singly, together = Prices(candle_price), Prices(candle_price)
    for record in deepcopy(records):
        singly.apply(record, FACTS)
    begun = 0
    while begun < len(records):
        end = data.draw(st.integers(begun + 1, len(records)))
        together.apply_all(deepcopy(records[begun:end]), FACTS)
        begun = end

    assert seen(together) == seen(singly)
