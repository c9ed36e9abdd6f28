"""What the watcher writes within the engine's own transactions: notes with each checkpoint, and the end of a
series."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from django.db import transaction

from core import clock
from core.times import epoch_ms_after, moment
from market.engine import SeriesEnding
from signals_feed.models import Hit, Signal, WatchMark
from signals_feed.publishing.actions import cancel

from .closing import Closing, close_signals
from .rules import Quoted, price


def read_mark_ms() -> int:
    """The time up to which the stored minutes have been judged."""
    at = WatchMark.objects.values_list("watched_until", flat=True).first()
    return 0 if at is None else epoch_ms_after(at)


def read_hits() -> list[Closing]:
    """The closings that another watcher noted but could no longer carry out."""
    Hit.objects.filter(signal__status=Signal.Status.CLOSED).delete()
    return [msgspec.convert(hit.closing, Closing) for hit in Hit.objects.order_by("pk")]


def write_notes(hits: list[Closing], watched_until_ms: int) -> None:
    if hits:
        open_ = set(
            Signal.objects.active().filter(pk__in=[hit.signal for hit in hits]).values_list("pk", flat=True)
        )
        Hit.objects.bulk_create(
            [
                Hit(signal_id=hit.signal, closing=msgspec.to_builtins(hit, str_keys=True))
                for hit in hits
                if hit.signal in open_
            ],
            ignore_conflicts=True,
        )
    if watched_until_ms:
        at = moment(watched_until_ms)
        if not WatchMark.objects.filter(pk=1).update(watched_until=at):
            WatchMark.objects.create(pk=1, watched_until=at)


SERIES_ENDED = (
    "Its prices came from {source} and come from {next_source} now: simulated and real ones do not mix."
)


@transaction.atomic
def end_signals(ending: SeriesEnding, hits: Sequence[Closing], epoch: str) -> None:
    """Close the signals that a tick has hit by that tick, and cancel all others at the last quote."""
    own = Signal.objects.active().filter(instrument__symbol=ending.symbol)
    close_signals([hit for hit in hits if own.filter(pk=hit.signal).exists()])
    signals = list(own.select_related("instrument"))
    for signal in signals:
        if not signal.cancel_reason:
            cancel(signal, reason=_reason(ending), by="market")
    at_ms = clock.now_ms()
    cancelled = Signal.CloseReason.CANCELLED
    close_signals(
        [
            Closing.at_current(signal, cancelled, _last_quote(ending, signal, epoch), at_ms)
            for signal in signals
        ]
    )


def _reason(ending: SeriesEnding) -> str:
    return SERIES_ENDED.format(next_source=ending.next_source, source=ending.source)[:200]


def _last_quote(ending: SeriesEnding, signal: Signal, epoch: str) -> Quoted:
    """The last quote of the series; if unknown, the one at publication, which belongs to it too."""
    last = ending.last
    if last is not None:
        digits = signal.instrument.digits
        bid, ask = (price(round(each, digits)) for each in (last.bid, last.ask))
        return Quoted(bid, ask, last.time_ms, epoch, ending.seq)
    unknown = Quoted(signal.tradable_price, signal.tradable_price, epoch_ms_after(signal.published_at))
    return signal.entry_quote() or unknown
