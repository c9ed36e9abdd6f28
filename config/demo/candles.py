"""The simulated market's past: 1m candles for 14 days, and 500 of each coarser interval."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from django.conf import settings
from django.db import transaction

from instruments.catalogue import InstrumentFacts, catalogue
from market.engine import checkpoints, store
from market.engine.feeds.demo import simulated
from market.engine.feeds.simulation import SimulatedMarket
from market.models import Candle as CandleRow
from market.prices.candles import Candle, CandleBuilder
from market.prices.history import KEPT
from market.prices.timeframes import COARSER, MINUTE_MS, TIMEFRAMES, interval_start

DAY_MS = TIMEFRAMES["1d"]
MINUTES_MS = 14 * DAY_MS
# Enough for 500 days of trading, with weekends and holidays between them.
PAST_MS = 730 * DAY_MS
# How far back each interval is kept before the 1m candles begin.
COARSE_KEPT = KEPT + 20
STEPS = (TIMEFRAMES["1h"], TIMEFRAMES["15m"], TIMEFRAMES["5m"], MINUTE_MS)

Progress = Callable[[str], None]


def seed_candles(now_ms: int, progress: Progress) -> None:
    """Fill what is missing up to the last full minute: everything, or the time since the last run."""
    catalogue.load_now()
    until_ms = interval_start(now_ms, MINUTE_MS)
    known = store.last_closed("1m")
    instruments = catalogue.active()
    for number, facts in enumerate(instruments, 1):
        progress(f"Simulating the market: {facts.symbol} ({number} of {len(instruments)})")
        _seed_instrument(facts, known.get(facts.id), until_ms)


@transaction.atomic
def _seed_instrument(facts: InstrumentFacts, last_ms: int | None, until_ms: int) -> None:
    market = simulated(facts, settings.DEMO_SEED)
    first_minute_ms = interval_start(until_ms - MINUTES_MS, DAY_MS)
    if last_ms is None or last_ms < first_minute_ms:
        CandleRow.objects.filter(instrument_id=facts.id, basis=CandleRow.Basis.DEMO).delete()
        past = _past(facts, market, first_minute_ms)
        recent = _recent(facts, market, CandleBuilder(), first_minute_ms, until_ms)
        store.write_candles((*past, *recent))
    elif any(facts.hours.sessions_between(last_ms + MINUTE_MS, until_ms)):
        builder = CandleBuilder()
        for minute in store.read_minutes_since(facts, interval_start(last_ms, DAY_MS)):
            builder.resume(minute)
        recent = _recent(facts, market, builder, last_ms + MINUTE_MS, until_ms)
        store.write_candles(recent)
    else:
        return
    _seed_quote(facts, market, until_ms)


def simulated_minutes(facts: InstrumentFacts, start_ms: int, end_ms: int) -> Iterator[Candle]:
    """1m candles of the open hours, made as they are asked for."""
    market = simulated(facts, settings.DEMO_SEED)
    for opens_ms, closes_ms in facts.hours.sessions_between(start_ms, end_ms):
        for bar in market.bars_between(opens_ms, closes_ms, MINUTE_MS):
            yield Candle(*bar)


def _recent(
    facts: InstrumentFacts, market: SimulatedMarket, builder: CandleBuilder, start_ms: int, end_ms: int
) -> Iterator[store.Row]:
    """1m candles, and those that they complete."""
    for opens_ms, closes_ms in facts.hours.sessions_between(start_ms, end_ms):
        for bar in market.bars_between(opens_ms, closes_ms, MINUTE_MS):
            for timeframe, candle in builder.add_minute(Candle(*bar)):
                yield facts.id, timeframe, candle, CandleRow.Basis.DEMO
        if not facts.hours.is_open(closes_ms):
            for timeframe, candle in builder.close_all():
                yield facts.id, timeframe, candle, CandleRow.Basis.DEMO


def _past(facts: InstrumentFacts, market: SimulatedMarket, end_ms: int) -> Iterator[store.Row]:
    """The coarser intervals before the 1m candles begin, each as far back as `bars=500` asks."""
    pieces = list(_coarse_pieces(facts, market, end_ms))
    for timeframe, span_ms in COARSER.items():
        fitting = [piece for piece, step_ms in pieces if step_ms <= span_ms]
        for candle in _merged(fitting, span_ms)[-COARSE_KEPT:]:
            yield facts.id, timeframe, candle, CandleRow.Basis.DEMO


def _coarse_pieces(
    facts: InstrumentFacts, market: SimulatedMarket, end_ms: int
) -> Iterator[tuple[Candle, int]]:
    """Bars of the widest step that each session starts and ends on; fine ones only where they are kept."""
    fine_from_ms = end_ms - 60 * DAY_MS
    for opens_ms, closes_ms in facts.hours.sessions_between(end_ms - PAST_MS, end_ms):
        steps = STEPS if opens_ms < fine_from_ms else STEPS[1:]
        step_ms = next(step for step in steps if opens_ms % step == closes_ms % step == 0)
        for bar in market.bars_between(opens_ms, closes_ms, step_ms):
            yield Candle(*bar), step_ms


def _merged(pieces: list[Candle], span_ms: int) -> list[Candle]:
    candles: list[Candle] = []
    for piece in pieces:
        opened_ms = interval_start(piece.opened_ms, span_ms)
        if candles and candles[-1].opened_ms == opened_ms:
            candles[-1].take(piece)
        else:
            candles.append(piece.opened_at(opened_ms))
    return candles


def _seed_quote(facts: InstrumentFacts, market: SimulatedMarket, until_ms: int) -> None:
    """The last quote of a closed market is that of its last session."""
    session = facts.hours.last_open_before(until_ms - 1)
    if session is not None:
        checkpoints.write_quote(facts.id, market.quote_at(min(session[1], until_ms) - 1))
