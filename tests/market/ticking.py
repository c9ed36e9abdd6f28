"""Ticks over difficult days, and what their candles must be, reckoned in another way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, NamedTuple

import msgspec
from hypothesis import strategies as st

from core.times import MINUTE_MS
from instruments.facts import InstrumentFacts
from instruments.hours import TradingHours
from market.prices.candles import TIMEFRAMES, CandleBuilder, PriceBar
from market.prices.records import Tick
from tests.factories import NOON

HOUR_MS = 60 * MINUTE_MS
GRACE_MS = 5_000
NOON_MS = int(NOON.timestamp()) * 1000
HOURS = {
    "always": TradingHours.parse("UTC", "24/7", ""),
    "forex": TradingHours.parse("America/New_York", "Sun 17:00-Fri 17:00", "2026-12-25"),
    # An hour's pause each day, in the middle of the 4h candle that opens at 20:00.
    "metals": TradingHours.parse("UTC", "Sun-Thu 23:00-22:00", "2027-01-01"),
    "stock": TradingHours.parse("America/New_York", "Mon-Fri 09:30-16:00", ""),
}
STARTS = {
    "an ordinary day": "2026-11-18T12:00",
    "before the daily pause": "2026-11-18T21:40",
    "before the weekend": "2026-11-20T20:30",
    "summer time begins in America": "2026-03-06T20:00",
    "summer time ends in America": "2026-10-30T19:00",
    "a year ends": "2026-12-31T20:30",
}


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def make_facts(symbol: str = "EURUSD", hours: str = "always", **fields: Any) -> InstrumentFacts:
    defaults: dict[str, Any] = {
        "id": 1,
        "symbol": symbol,
        "name": "Test",
        "type": "forex",
        "pip_size": 0.0001,
        "contract_size": 100_000,
        "margin_rate": 0.03,
        "min_lot": 0.01,
        "max_lot": 50,
        "digits": 5,
        "volume_kind": "ticks",
        "order_flow_source": "tick_rule",
        "stale_after_s": 60,
        "outlier_percent": 0.0,
        "source": "",
        "fallback": "",
        "active": True,
        "hours": HOURS[hours],
        "timezone": "UTC",
        "sessions": "24/7",
        "holidays": "",
    }
    return InstrumentFacts(**(defaults | fields))


class TickSequence(NamedTuple):
    """Ticks of a market, and how long after each the clock came by; none was under way for longer than is
    waited for."""

    hours: TradingHours
    ticks: list[Tick]
    clock_after_ms: list[int]


gaps = st.integers(0, 900) | st.integers(1_000, 70_000) | st.integers(MINUTE_MS, 7 * HOUR_MS)
moves = st.tuples(gaps, st.integers(107_700, 108_300), st.integers(0, 30), st.integers(0, 10**9))


@st.composite
def tick_sequences(draw: st.DrawFn) -> TickSequence:
    hours = HOURS[draw(st.sampled_from(sorted(HOURS)))]
    at_ms, ticks = ms(STARTS[draw(st.sampled_from(sorted(STARTS)))]), []
    for gap_ms, points, spread, volume in draw(st.lists(moves, min_size=1, max_size=40)):
        at_ms += gap_ms
        if not hours.is_open(at_ms):
            at_ms = hours.next_open(at_ms) or at_ms
        ticks.append(Tick("X", points / 1e5, (points + spread) / 1e5, at_ms, volume / 1e8))
    return TickSequence(
        hours, ticks, draw(st.lists(st.integers(0, 5_000), min_size=len(ticks), max_size=len(ticks)))
    )


Rows = dict[tuple[str, int], PriceBar]
"""As the database keeps them: a candle that is written again replaces the one before."""


def drive(builder: CandleBuilder, sequence: TickSequence, first: int, end: int, rows: Rows) -> None:
    """Give a builder some of the ticks, as the engine does."""
    timed = list(enumerate(zip(sequence.ticks, sequence.clock_after_ms, strict=True), 1))
    for number, (tick, after_ms) in timed[first:end]:
        keep(rows, builder.add(tick.time_ms, tick.bid, tick.ask, tick.volume))
        keep(rows, builder.close_until(tick.time_ms + after_ms - GRACE_MS))
        following = sequence.ticks[number:]
        session = sequence.hours.session_at(tick.time_ms)
        if session and following and following[0].time_ms >= session[1]:
            reopens_ms = sequence.hours.next_open(session[1] - 1)
            keep(rows, builder.close_until(reopens_ms) if reopens_ms else ())


def keep(rows: Rows, closed: Iterable[tuple[str, PriceBar]]) -> None:
    rows |= {(timeframe, candle.opened_ms): candle for timeframe, candle in closed}


def candles_of(sequence: TickSequence) -> Rows:
    builder, rows = CandleBuilder(), Rows()
    drive(builder, sequence, 0, len(sequence.ticks), rows)
    keep(rows, builder.close_until(sequence.ticks[-1].time_ms + 2 * TIMEFRAMES["1d"]))
    return rows


def minutes_of(ticks: list[Tick]) -> Iterator[PriceBar]:
    for minute, group in groupby(ticks, key=lambda tick: tick.time_ms // MINUTE_MS):
        made = list(group)
        bids, asks = [tick.bid for tick in made], [tick.ask for tick in made]
        volume = round(sum(round(tick.volume * 1e8) for tick in made) / 1e8, 8)
        prices = bids[0], max(bids), min(bids), bids[-1]
        yield PriceBar(minute * MINUTE_MS, *prices, volume, max(asks), min(asks))


def aggregate(minutes: Iterable[PriceBar], span_ms: int) -> Iterator[PriceBar]:
    for number, group in groupby(minutes, key=lambda minute: minute.opened_ms // span_ms):
        made = list(group)
        high, low = max(minute.high for minute in made), min(minute.low for minute in made)
        volume = round(sum(round(minute.volume * 1e8) for minute in made) / 1e8, 8)
        asks = max(minute.ask_high for minute in made), min(minute.ask_low for minute in made)
        yield PriceBar(number * span_ms, made[0].open, high, low, made[-1].close, volume, *asks)


def expected(ticks: list[Tick]) -> Rows:
    minutes = list(minutes_of(ticks))
    return {
        (timeframe, candle.opened_ms): candle
        for timeframe, span_ms in TIMEFRAMES.items()
        for candle in aggregate(minutes, span_ms)
    }


def copy(candle: PriceBar) -> PriceBar:
    return msgspec.structs.replace(candle)
