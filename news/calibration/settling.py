"""Settles outcomes: looks up, once a horizon has passed, how far prices moved in it."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import count
from statistics import fmean
from typing import NamedTuple

from django.db.models import Q
from django.utils import timezone

from core.background import BackgroundLoop
from core.database import UNANSWERED
from core.fault_log import EachFault
from core.threads import in_thread
from core.times import epoch_ms, moment
from instruments.models import Instrument
from market.models import Candle
from market.prices import MINUTE_MS, TIMEFRAMES
from market.store import present_kind
from news.models import Outcome
from news.models.outcomes import INVERSE

logger = logging.getLogger(__name__)
ROUND_S = 60.0
# Outcomes whose prices were missing are looked at in every so many rounds: they pile up over weekends.
LATE_EVERY = 15
LATE_AFTER = timedelta(minutes=10)
BATCH = 200
# After this the last minute has been closed and written.
SETTLED_AFTER = timedelta(minutes=2)
# Missing prices may still be filled in from a venue's history, but not after a day.
GIVEN_UP_AFTER = timedelta(days=1)
HOUR_MS = TIMEFRAMES["1h"]
# A price further away than this does not count: the market was closed, or the feed was down.
NEAR_MS = 15 * MINUTE_MS
NEAR_BY_HOURS_MS = HOUR_MS


class CandleEnds(NamedTuple):
    opened_ms: int
    open: float
    close: float


class Span(NamedTuple):
    start_ms: int
    end_ms: int


def settling_loop() -> BackgroundLoop:
    rounds = count()

    async def settle_due() -> None:
        now = timezone.now()
        await settle_all(now, since=now - LATE_AFTER if next(rounds) % LATE_EVERY else None)

    return BackgroundLoop(
        "news outcomes",
        settle_due,
        fault=EachFault(logger, "The outcomes of news wait for the database"),
        broke="Settling the outcomes of news broke and goes on",
        passing=UNANSWERED,
        after=ROUND_S,
    )


async def settle_all(now: datetime, *, since: datetime | None = None) -> None:
    """Works in batches, so that no thread of the API is busy for long."""
    last = 0
    while (last := await in_thread(settle, now, after=last, since=since)) > 0:
        pass


def settle(now: datetime, after: int = 0, *, since: datetime | None = None) -> int:
    """Look at one batch of what is due; returns the last one's number, 0 when there are no more."""
    found = Outcome.objects.due(now - SETTLED_AFTER).filter(pk__gt=after)
    due = list((found.filter(due_at__gte=since) if since else found)[:BATCH])
    for outcome in due:
        move = measure(outcome)
        if move is not None or not outcome.symbols or now - outcome.due_at > GIVEN_UP_AFTER:
            # Another process may have settled it in the meantime, with the same result.
            Outcome.objects.filter(pk=outcome.pk, settled_at=None).update(settled_at=now, move_percent=move)
    return due[-1].pk if due else 0


def measure(outcome: Outcome) -> float | None:
    return mean_move(_move_for_item(sided, outcome) for sided in outcome.symbols.split())


def _move_for_item(sided: str, outcome: Outcome) -> float | None:
    move = _move_of(sided.removeprefix(INVERSE), outcome)
    return inverse(move) if sided.startswith(INVERSE) else move


def _move_of(symbol: str, outcome: Outcome) -> float | None:
    span = Span(epoch_ms(outcome.entered_at), epoch_ms(outcome.due_at))
    by_minutes = move_percent(list(_bars(symbol, "1m", span, NEAR_MS)), span, MINUTE_MS, NEAR_MS)
    if by_minutes is not None or span.end_ms - span.start_ms < 24 * HOUR_MS:
        return by_minutes
    # Where no minutes are kept, hourly candles are precise enough for a day, but not for an hour.
    bars = list(_bars(symbol, "1h", span, NEAR_BY_HOURS_MS))
    return move_percent(bars, span, HOUR_MS, NEAR_BY_HOURS_MS)


def _bars(symbol: str, timeframe: str, span: Span, near_ms: int) -> Iterator[CandleEnds]:
    """The candles around both ends, in order."""
    length_ms = MINUTE_MS if timeframe == "1m" else HOUR_MS
    about_start = Q(opened_at__gte=moment(span.start_ms), opened_at__lte=moment(span.start_ms + near_ms))
    about_end = Q(opened_at__gte=moment(span.end_ms - near_ms - length_ms), opened_at__lt=moment(span.end_ms))
    instrument_id = Instrument.objects.filter(symbol=symbol).values_list("pk", flat=True).first()
    if instrument_id is None:
        return
    own = {"instrument": instrument_id, "simulated": present_kind(instrument_id), "timeframe": timeframe}
    candles = Candle.objects.filter(about_start | about_end, **own)
    for opened_at, opened, close in candles.order_by("opened_at").values_list("opened_at", "open", "close"):
        yield CandleEnds(epoch_ms(opened_at), float(opened), float(close))


def move_percent(bars: Sequence[CandleEnds], span: Span, length_ms: int, near_ms: int) -> float | None:
    """None if the price is missing at one of the ends."""
    entry = first_after(bars, span.start_ms, near_ms)
    leave = last_before(bars, span.end_ms, length_ms, near_ms)
    return None if not entry or leave is None else (leave / entry - 1) * 100


def first_after(bars: Sequence[CandleEnds], at_ms: int, near_ms: int) -> float | None:
    """The open of the first candle that opened at the moment or soon after it."""
    return next((bar.open for bar in bars if at_ms <= bar.opened_ms <= at_ms + near_ms), None)


def last_before(bars: Sequence[CandleEnds], at_ms: int, length_ms: int, near_ms: int) -> float | None:
    """The close of the last candle that had closed by the moment, or shortly before it."""
    closed = (bar for bar in reversed(bars) if bar.opened_ms + length_ms <= at_ms)
    return next((bar.close for bar in closed if bar.opened_ms + length_ms >= at_ms - near_ms), None)


def inverse(move: float | None) -> float | None:
    """How far 1/price moved."""
    return None if move is None else (100 / (100 + move) - 1) * 100


def mean_move(moves: Iterable[float | None]) -> float | None:
    """The mean over the item's instruments: one item is one observation."""
    priced = [move for move in moves if move is not None]
    return fmean(priced) if priced else None
