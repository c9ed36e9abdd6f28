"""Acts on signals: each writes its event in the same transaction."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from django.db import transaction
from django.utils import timezone

from accounts.models import ControlEvent

from .closing import exit_price, result
from .models import Announcement, Signal


class NotActive(Exception):
    """The signal was closed before."""


@transaction.atomic
def publish(signal: Signal) -> None:
    """Put a new signal into the feed."""
    signal.save(force_insert=True)
    _announce(signal, Announcement.Kind.PUBLISHED)


@transaction.atomic
def cancel(signal: Signal, *, reason: str, by: str) -> None:
    """Staff take a signal back. It closes at the next tradable price, and its result counts."""
    if not reason.strip():
        raise ValueError("A cancellation needs a written reason.")
    marked = (
        Signal.objects.active().filter(pk=signal.pk, cancel_reason="").update(cancel_reason=reason.strip())
    )
    if not marked:
        raise NotActive("This signal was closed or cancelled before.")
    ControlEvent.objects.publish("signal.cancelled", by=by, signal=str(signal.pk), reason=reason.strip())


@transaction.atomic
def close(signal: Signal, *, reason: str, bid: Decimal, ask: Decimal, at: datetime | None = None) -> bool:
    """Close an active signal at the exit side of a quote, once. False if somebody else was first."""
    price = exit_price(signal.direction, bid, ask)
    outcome = result(
        signal.direction,
        signal.entry,
        signal.stop_loss,
        signal.tradable_price,
        price,
        signal.instrument.pip_size,
    )
    closed = (
        Signal.objects.active()
        .filter(pk=signal.pk)
        .update(
            status=Signal.Status.CLOSED,
            close_price=price,
            closed_at=at or timezone.now(),
            close_reason=reason,
            **outcome._asdict(),
        )
    )
    if closed:
        _announce(signal, Announcement.Kind.CLOSED, reason=reason)
    return bool(closed)


def _announce(signal: Signal, kind: Announcement.Kind, **facts: str) -> None:
    event = ControlEvent.objects.publish(f"signal.{kind}", signal=str(signal.pk), **facts)
    # After the event, but locking nothing that this transaction does not hold already.
    Announcement.objects.create(position=event.position, signal=signal, kind=kind)
