"""Settles outcomes: looks up, once a horizon has passed, how far prices moved in it."""

import logging
from datetime import datetime, timedelta
from itertools import count
from statistics import fmean

from django.utils import timezone

from core.background import BackgroundLoop
from core.database import UNANSWERED
from core.fault_log import EachFault
from core.threads import in_thread
from instruments.models import Instrument
from market.models import Candle
from market.prices import TIMEFRAMES
from market.store import present_kind
from news.models import Outcome
from news.models.outcomes import INVERSE

logger = logging.getLogger(__name__)
ROUND_S = 60.0
# Outcomes that lack prices are looked at only once in this many rounds: they pile up over weekends.
LATE_EVERY = 15
LATE_AFTER = timedelta(minutes=10)
BATCH = 200
# After this the last minute has been closed and written.
SETTLED_AFTER = timedelta(minutes=2)
# Missing prices may still be filled in from a venue's history, but not after a day.
GIVEN_UP_AFTER = timedelta(days=1)
# A price further away than this does not count: the market was closed, or the feed was down.
NEAR, NEAR_BY_HOURS = timedelta(minutes=15), timedelta(hours=1)


def settling_loop() -> BackgroundLoop:
    rounds = count()

    async def settle_due() -> None:
        now = timezone.now()
        since, last = now - LATE_AFTER if next(rounds) % LATE_EVERY else None, 0
        # Settled in batches, so that no thread of the API is occupied for long.
        while (last := await in_thread(settle, now, after=last, since=since)) > 0:
            pass

    return BackgroundLoop(
        "news outcomes",
        settle_due,
        fault=EachFault(logger, "The outcomes of news wait for the database"),
        broke="Settling the outcomes of news broke and goes on",
        passing=UNANSWERED,
        after=ROUND_S,
    )


def settle(now: datetime, after: int = 0, *, since: datetime | None = None) -> int:
    """Settles one batch of what is due; returns the number of its last outcome, or 0 when none is left."""
    found = Outcome.objects.due(now - SETTLED_AFTER).filter(pk__gt=after)
    due = list((found.filter(due_at__gte=since) if since else found)[:BATCH])
    for outcome in due:
        move = measure(outcome)
        if move is not None or not outcome.symbols or now - outcome.due_at > GIVEN_UP_AFTER:
            # Another process may have settled it in the meantime, with the same result.
            Outcome.objects.filter(pk=outcome.pk, settled_at=None).update(settled_at=now, move_percent=move)
    return due[-1].pk if due else 0


def measure(outcome: Outcome) -> float | None:
    """The mean over the item's instruments: one item is one observation."""
    moves = (_move_of(sided, outcome) for sided in outcome.symbols.split())
    priced = [move for move in moves if move is not None]
    return fmean(priced) if priced else None


def _move_of(sided: str, outcome: Outcome) -> float | None:
    symbol = sided.removeprefix(INVERSE)
    change = _change_of(symbol, "1m", outcome, NEAR)
    if change is None and outcome.due_at - outcome.entered_at >= timedelta(days=1):
        # Where no minutes are kept, hourly candles are precise enough for a day, but not for an hour.
        change = _change_of(symbol, "1h", outcome, NEAR_BY_HOURS)
    if change is None:
        return None
    return ((1 / change if sided.startswith(INVERSE) else change) - 1) * 100


def _change_of(symbol: str, timeframe: str, outcome: Outcome, near: timedelta) -> float | None:
    """The close of the last candle that closed before the end, divided by the open of the first one that
    opened after the start; None if either is missing."""
    instrument_id = Instrument.objects.filter(symbol=symbol).values_list("pk", flat=True).first()
    if instrument_id is None:
        return None
    own = {"instrument": instrument_id, "simulated": present_kind(instrument_id), "timeframe": timeframe}
    candles = Candle.objects.filter(**own).order_by("opened_at")
    start, end = outcome.entered_at, outcome.due_at - timedelta(milliseconds=TIMEFRAMES[timeframe])
    entry = candles.filter(opened_at__range=(start, start + near)).first()
    leave = candles.filter(opened_at__range=(end - near, end)).last()
    return float(leave.close) / float(entry.open) if entry and entry.open and leave else None
