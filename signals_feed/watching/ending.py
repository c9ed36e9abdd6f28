"""Signals do not outlive the series of prices that they were published on."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction

from market import services as market
from market.engine.witness import Ending
from signals_feed.closures import Closing, close_all
from signals_feed.models import Evidence, Signal
from signals_feed.prices import price
from signals_feed.quotes import Quoted, ms
from signals_feed.services import cancel

REASON = "Its prices came from {source} and come from {next_source} now: simulated and real ones do not mix."


@transaction.atomic
def end_signals(ending: Ending, hits: Sequence[Closing], epoch: str) -> None:
    """Those that a tick has hit are closed by it, all others cancelled at the last quote."""
    own = Signal.objects.active().filter(instrument__symbol=ending.symbol)
    close_all([hit for hit in hits if own.filter(pk=hit.signal).exists()])
    signals = list(own.select_related("instrument"))
    for signal in signals:
        if not signal.cancel_reason:
            cancel(signal, reason=_reason(ending), by="market")
    at_ms = market.now_ms()
    cancelled = Signal.CloseReason.CANCELLED
    close_all(
        [
            Closing.at_current(signal, cancelled, _last_quote(ending, signal, epoch), at_ms)
            for signal in signals
        ]
    )


def _reason(ending: Ending) -> str:
    return REASON.format(next_source=ending.next_source, source=ending.source)[:200]


def _last_quote(ending: Ending, signal: Signal, epoch: str) -> Quoted:
    """Of the series that ends. Should nobody know it any more, the quote at publication was of it too."""
    last = ending.last
    if last is not None:
        digits = signal.instrument.digits
        bid, ask = (price(round(each, digits)) for each in (last.bid, last.ask))
        return Quoted(bid, ask, last.time_ms, epoch, ending.seq)
    entry = Evidence.objects.filter(signal=signal, kind=Evidence.Kind.ENTRY).first()
    if entry is None or entry.bid is None or entry.ask is None:
        return Quoted(signal.tradable_price, signal.tradable_price, ms(signal.published_at))
    return Quoted(entry.bid, entry.ask, ms(entry.at), entry.epoch, entry.seq)
