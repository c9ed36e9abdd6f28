"""The simulated market's past: 1m candles for 14 days, and 500 of each coarser interval. It is only made up
where no ticks were sent."""

from collections.abc import Iterator

from django.conf import settings
from django.db import transaction

from core.times import MINUTE_MS
from instruments.facts import InstrumentFacts
from instruments.sources import DEMO
from market.prices.candles import (
    COARSER,
    DAY_MS,
    TIMEFRAMES,
    CandleBuilder,
    PriceBar,
    aggregate,
    interval_start,
)
from market.prices.history import KEPT
from market.prices.records import Tick
from market.simulated.simulated_market import SimulatedMarket, simulated

from .models import Candle
from .store import candle_rows

MINUTES_MS = 14 * DAY_MS

# Enough for 500 days of trading, with weekends and holidays between them.
PAST_MS = 730 * DAY_MS

# How far back each interval is kept before the 1m candles begin.
COARSE_KEPT = KEPT + 20
STEPS = (TIMEFRAMES["1h"], TIMEFRAMES["15m"], TIMEFRAMES["5m"], MINUTE_MS)

# The bars of a simulated market are made on the bid.
BASIS = Candle.Basis.BID


def make_past(facts: InstrumentFacts, until_ms: int) -> Tick | None:
    """All of it, for an instrument that has none; returns its last quote."""
    market = simulated(facts, settings.DEMO_SEED)
    first_minute_ms = interval_start(until_ms - MINUTES_MS, DAY_MS)
    # Before the transaction: the database ends one in which nothing is said for long.
    rows = [*_coarse(facts, market, first_minute_ms - PAST_MS, first_minute_ms)]
    rows += _minutes(facts, market, CandleBuilder(), first_minute_ms, until_ms)
    quote = last_quote(facts, until_ms)
    with transaction.atomic():
        candle_rows.write_candles(rows)
    return quote


def fill_gap(facts: InstrumentFacts, last_ms: int, since_ms: int, until_ms: int) -> bool:
    """The minutes from one moment to another, after the last one that is stored; False if there are none."""
    if not any(facts.hours.sessions_between(since_ms, until_ms)):
        return False
    market = simulated(facts, settings.DEMO_SEED)
    first_minute_ms = max(since_ms, interval_start(until_ms - MINUTES_MS, DAY_MS))
    rows: list[candle_rows.CandleToWrite] = []
    if first_minute_ms > since_ms:
        # Away for longer than minutes are made for: coarse candles of whole days lead up to them.
        next_day_ms = interval_start(since_ms, DAY_MS) + DAY_MS
        rows += _coarse(facts, market, next_day_ms, first_minute_ms)
    builder = CandleBuilder()
    for minute in candle_rows.read_minutes_since(facts, interval_start(last_ms, DAY_MS), simulated=True):
        builder.resume(minute)
    rows += _minutes(facts, market, builder, first_minute_ms, until_ms)
    with transaction.atomic():
        candle_rows.write_candles(rows)
    return True


def last_quote(facts: InstrumentFacts, until_ms: int) -> Tick | None:
    """The last quote of a closed market is that of its last session."""
    session = facts.hours.last_open_before(until_ms - 1)
    if session is None:
        return None
    return simulated(facts, settings.DEMO_SEED).quote_at(min(session[1], until_ms) - 1)


def simulated_minutes(facts: InstrumentFacts, start_ms: int, end_ms: int) -> Iterator[PriceBar]:
    """1m candles of the open hours, made as they are asked for."""
    market = simulated(facts, settings.DEMO_SEED)
    for opens_ms, closes_ms in facts.hours.sessions_between(start_ms, end_ms):
        for bar in market.bars_between(opens_ms, closes_ms, MINUTE_MS):
            yield PriceBar(*bar, DEMO)


def _minutes(
    facts: InstrumentFacts, market: SimulatedMarket, builder: CandleBuilder, start_ms: int, end_ms: int
) -> Iterator[candle_rows.CandleToWrite]:
    """1m candles, and those that they complete."""
    for opens_ms, closes_ms in facts.hours.sessions_between(start_ms, end_ms):
        for bar in market.bars_between(opens_ms, closes_ms, MINUTE_MS):
            for timeframe, candle in builder.add_minute(PriceBar(*bar, DEMO)):
                yield facts.id, timeframe, candle, BASIS
        if not facts.hours.is_open(closes_ms) and (reopens_ms := facts.hours.next_open(closes_ms)):
            for timeframe, candle in builder.close_until(reopens_ms):
                yield facts.id, timeframe, candle, BASIS


def _coarse(
    facts: InstrumentFacts, market: SimulatedMarket, start_ms: int, end_ms: int
) -> Iterator[candle_rows.CandleToWrite]:
    """The coarser intervals before the 1m candles begin, each as far back as `bars=500` asks."""
    pieces = list(_coarse_pieces(facts, market, start_ms, end_ms))
    for timeframe, span_ms in COARSER.items():
        fitting = [piece for piece, step_ms in pieces if step_ms <= span_ms]
        for candle in list(aggregate(fitting, span_ms))[-COARSE_KEPT:]:
            yield facts.id, timeframe, candle, BASIS


def _coarse_pieces(
    facts: InstrumentFacts, market: SimulatedMarket, start_ms: int, end_ms: int
) -> Iterator[tuple[PriceBar, int]]:
    """Bars of the widest step that each session starts and ends on; fine ones only where they are kept."""
    fine_from_ms = end_ms - 60 * DAY_MS
    for opens_ms, closes_ms in facts.hours.sessions_between(start_ms, end_ms):
        steps = STEPS if opens_ms < fine_from_ms else STEPS[1:]
        step_ms = next(step for step in steps if opens_ms % step == closes_ms % step == 0)
        for bar in market.bars_between(opens_ms, closes_ms, step_ms):
            yield PriceBar(*bar, DEMO), step_ms
