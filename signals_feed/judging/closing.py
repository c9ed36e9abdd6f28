"""The one place that closes signals. Whoever finds the row active closes it; all others come too late."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Field, Max, Min, Q

from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from market.engine.store.series import present_kind
from market.models import IMPORTED, Candle, FormingMinute
from signals_feed.ledger.ledger import RESULT, Fact, LedgerEntry, Payload, closure_payload, plain
from signals_feed.models import Announcement, Evidence, Signal

from . import rules
from .rules import (
    CANCELLED,
    EXPIRED,
    MINUTE_MS,
    Exit,
    Quoted,
    SignalLevels,
    StoredMinute,
    exit_price,
    in_r,
    moment,
    ms,
    result,
)


class SeenExtremes(NamedTuple):
    """The extremes of the exit side that a watcher saw, and from when on."""

    high: Decimal
    low: Decimal
    since_ms: int
    """0: since the publication."""


class Closing(NamedTuple):
    """How a signal ends, with what shows it: plain values, so that it can wait in the database."""

    signal: UUID
    price: Decimal
    reason: str
    at_ms: int
    rule: str
    source: str
    shown: dict[str, Any]
    """The tick or the minute, by the names of the evidence's columns."""
    seen: SeenExtremes | None = None
    """How far the price went, as far as somebody watched."""

    @classmethod
    def at_current(cls, signal: Signal, reason: str, quote: Quoted, at_ms: int) -> Closing:
        price = exit_price(signal.direction, quote.bid, quote.ask)
        return cls(signal.pk, price, reason, at_ms, rules.CURRENT, Evidence.Source.TICK, tick_shown(quote))


def by_candle(signal: UUID, exit_: Exit, minute: StoredMinute, seen: SeenExtremes | None) -> Closing:
    shown: dict[str, Any] = minute._asdict()
    opened_ms = shown.pop("opened_ms")
    shown["at"] = moment(opened_ms)
    at_ms = opened_ms + MINUTE_MS - 1
    return Closing(signal, exit_.price, exit_.reason, at_ms, exit_.rule, Evidence.Source.CANDLE, shown, seen)


def levels_of(signal: Signal, quoted_ms: int = 0) -> SignalLevels:
    """What a signal waits for; `quoted_ms` is the time of the quote that it was published at."""
    ends_at = min(signal.cancelled_at or signal.expires_at, signal.expires_at)
    return SignalLevels(
        signal.direction,
        signal.stop_loss,
        signal.take_profit,
        max(quoted_ms, ms(signal.published_at)),
        ms(ends_at),
        CANCELLED if signal.cancel_reason else EXPIRED,
    )


def tick_shown(quote: Quoted) -> dict[str, Any]:
    return {"at": quote.at, "bid": quote.bid, "ask": quote.ask, "epoch": quote.epoch, "seq": quote.seq}


def close_signal(closing: Closing) -> bool:
    """False if somebody else was first."""
    return bool(close_signals([closing]))


@transaction.atomic
def close_signals(closings: Sequence[Closing], hold: Callable[[], None] | None = None) -> set[UUID]:
    """The identifiers of those that this closed. `hold` raises if they are another's to close by now."""
    if hold is not None:
        hold()
    wanted = {closing.signal: closing for closing in closings}
    signals = Signal.objects.active().select_related("instrument").in_bulk(list(wanted))
    # All rows before the first event, and always in the same order: who waits for a row then holds
    # nothing that its owner waits for.
    closed = [
        (signals[pk], exit_)
        for pk in sorted(signals)
        if (exit_ := _close_row(signals[pk], wanted[pk])) is not None
    ]
    _tell(closed)
    return {signal.pk for signal, _ in closed}


def _close_row(signal: Signal, closing: Closing) -> Evidence | None:
    terms = signal.direction, signal.entry, signal.stop_loss, signal.tradable_price
    outcome = result(*terms, closing.price, signal.instrument.pip_size)
    best, worst = best_and_worst(signal, closing.price, closing.at_ms, closing.seen)
    signal.status = Signal.Status.CLOSED
    signal.close_price, signal.close_reason = closing.price, closing.reason
    # A venue's clock may be behind ours.
    signal.closed_at = max(moment(closing.at_ms), signal.published_at)
    signal.pnl, signal.pnl_percent, signal.pnl_r = outcome
    signal.best_r, signal.worst_r = in_r(*terms, best), in_r(*terms, worst)
    values = {name: getattr(signal, name) for name in ("status", *RESULT)}
    if not Signal.objects.active().filter(pk=signal.pk).update(**values):
        return None
    return Evidence(
        signal=signal,
        kind=Evidence.Kind.EXIT,
        source=closing.source,
        rule=closing.rule,
        best=best,
        worst=worst,
        **{name: _column(name).to_python(value) for name, value in closing.shown.items()},
    )


def _column(name: str) -> Field[Any, Any]:
    return Evidence._meta.get_field(name)  # type: ignore[return-value]


def measured(signal: Signal) -> Payload:
    """Staff may change an instrument; what a result was computed with stays on record."""
    return {"pip_size": plain(signal.instrument.pip_size)}


def _tell(closed: list[tuple[Signal, Evidence]]) -> None:
    announcements = []
    for signal, _ in closed:
        event = ControlEvent.objects.publish(
            EventKind.SIGNAL_CLOSED, signal=str(signal.pk), reason=signal.close_reason
        )
        announcements.append(
            Announcement(position=event.position, signal=signal, kind=Announcement.Kind.CLOSED)
        )
    if closed:
        # After the events, but locking nothing that this transaction does not hold already.
        Announcement.objects.bulk_create(announcements)
        Evidence.objects.bulk_create([exit_ for _, exit_ in closed])
        LedgerEntry.objects.append(
            [
                Fact(LedgerEntry.Kind.CLOSE, signal.pk, closure_payload(signal, exit_) | measured(signal))
                for signal, exit_ in closed
            ]
        )


def best_and_worst(
    signal: Signal, close_price: Decimal, at_ms: int, seen: SeenExtremes | None
) -> tuple[Decimal, Decimal]:
    """Best and worst. What nobody watched is taken from the stored minutes that lie within its life."""
    prices = [close_price]
    if seen is not None:
        prices += [seen.high, seen.low]
    if seen is None or seen.since_ms:
        prices += _entry(signal) + _stored(signal, at_ms if seen is None else seen.since_ms)
    high, low = max(prices), min(prices)
    # At the target it is over: what the tick showed beyond it was not for the publisher.
    if signal.direction == "buy":
        return min(high, signal.take_profit), low
    return max(low, signal.take_profit), high


def _entry(signal: Signal) -> list[Decimal]:
    entry = Evidence.objects.filter(signal=signal, kind=Evidence.Kind.ENTRY).first()
    if entry is None or entry.bid is None or entry.ask is None:
        return []
    return [exit_price(signal.direction, entry.bid, entry.ask)]


def _stored(signal: Signal, until_ms: int) -> list[Decimal]:
    """Nothing of a buy where the candles are made of mids."""
    is_buy = signal.direction == "buy"
    if is_buy and settings.CANDLE_PRICE == "mid":
        return []
    high, low = ("high", "low") if is_buy else ("ask_high", "ask_low")
    own = Q(instrument=signal.instrument_id, opened_at__gte=signal.published_at)
    kind = present_kind(signal.instrument_id)
    minutes = Candle.objects.filter(
        own, simulated=kind, timeframe="1m", opened_at__lte=moment(until_ms - MINUTE_MS)
    )
    own_minutes = minutes.exclude(Q(basis=Candle.Basis.TRADES) | Q(source=IMPORTED))
    found = own_minutes.aggregate(high=Max(high), low=Min(low))
    forming = FormingMinute.objects.filter(own, opened_at__lte=moment(until_ms)).values_list(high, low)
    known = [found["high"], found["low"], *(forming.first() or ())]
    return [price for price in known if price is not None]
