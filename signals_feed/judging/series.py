"""Signals do not outlive the prices that they were published on: a change of kind ends them."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import OperationalError, transaction

from core import clock
from market.engine import SeriesEnding
from signals_feed import record
from signals_feed.closing import Closing, Ending
from signals_feed.contradictions import FILL_AFTER_MS, as_stored
from signals_feed.decisions import TOO_OLD, Arming, Decision, write_decisions
from signals_feed.exits import Tick
from signals_feed.models import Signal
from signals_feed.publishing.actions import end_signals, may_last_be_shown, reason_of
from signals_feed.rules import exact_price

from .followed import Followed
from .reading import read_records


@transaction.atomic
def end_series(ending: SeriesEnding, hits: Sequence[Ending], epoch: str, known: Sequence[Followed]) -> None:
    """What was decided by a tick stays. All others are cancelled at the last price, or where that may not be
    handed on, at that of their fill, which everybody has."""
    end_signals(ending, [each for each in hits if isinstance(each, Closing)], epoch)
    own = Signal.objects.active().filter(instrument__symbol=ending.symbol, rules=record.RULES)
    may_be_shown, ids = may_last_be_shown(ending), set(own.values_list("pk", flat=True))
    if may_be_shown:
        write_decisions([each for each in hits if isinstance(each, Decision) and each.signal in ids])
    left, at_ms = list(own.values_list("pk", flat=True)), clock.now_ms()
    followed = {each.id: each for each in known}

    def arming(asked: str, number: int, ahead_ms: int) -> Arming:
        return Arming(asked, number, at_ms, epoch, ending.seq, FILL_AFTER_MS, 0, ahead_ms)

    # Some are published in this moment, and not followed yet.
    entries = read_records([pk for pk in left if pk not in followed])
    followed |= {pk: Followed(pk, ending.symbol, each, arming) for pk, each in entries.items()}
    cause = record.KIND_CHANGED if may_be_shown else record.WITHHELD
    ends = [
        followed[pk].end_at_last(cause, at_ms, reason_of(ending), last_of(ending, followed[pk], at_ms))
        for pk in left
    ]
    if TOO_OLD in write_decisions(ends).values():
        raise OperationalError("The ledger took too long: the series ends a little later.")


def last_of(ending: SeriesEnding, followed: Followed, at_ms: int) -> Tick | None:
    """The last tick of the series, if this engine did not see it."""
    last, walk = ending.last, followed.walk
    if last is None or walk is None or walk.last.seq == ending.seq or last.time_ms < walk.fill.time_ms:
        return None
    prices = exact_price(last.bid), exact_price(last.ask)
    tick = Tick(*prices, last.time_ms, seq=ending.seq, feed=ending.source)
    return as_stored(tick, walk.fill, at_ms)
