"""How much one publisher may publish: so much a minute, and so many signals that are still active."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings

from accounts.models import User

from .models import Signal
from .publishing import Refused

TOO_MANY = (
    "You published {most} signals within a minute, which is the most. Wait a minute, then publish this one."
)
TOO_MANY_ACTIVE = "{most} of your signals are active, which is the most. Close one, or wait until one ends."


def check_room(publisher: User, at: datetime) -> None:
    """In the transaction that publishes: the lock makes those of one publisher take turns."""
    User.objects.select_for_update(no_key=True).get(pk=publisher.pk)
    own = Signal.objects.filter(user=publisher)
    most = settings.PUBLICATIONS_PER_MINUTE
    if most and own.filter(published_at__gt=at - timedelta(minutes=1)).count() >= most:
        raise Refused("", TOO_MANY.format(most=most))
    most = settings.ACTIVE_SIGNALS_PER_PUBLISHER
    if most and own.active().count() >= most:
        raise Refused("", TOO_MANY_ACTIVE.format(most=most))
