"""What stays of a person when their account is deleted, for the page that asks and the one after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from django.contrib.admin.models import LogEntry

from accounts.models import User
from core.events.kinds import EventKind

from .account_data import done_to_others

# Whoever publishes a signal and closes it has done that to nobody.
OWN_SIGNALS = (EventKind.SIGNAL_PUBLISHED, EventKind.SIGNAL_CLOSED)


class Staying(NamedTuple):
    signals: bool
    name_in_ledger: bool
    name_in_scores: bool
    staff_record: bool


def nothing(user: User) -> bool:
    return False


class StayingRows:
    """Rooms above say it of their rows."""

    signals: Callable[[User], bool] = staticmethod(nothing)
    name_in_ledger: Callable[[User], bool] = staticmethod(nothing)
    name_in_scores: Callable[[User], bool] = staticmethod(nothing)

    def of(self, user: User) -> Staying:
        done = any(row["kind"] not in OWN_SIGNALS for row in done_to_others(user))
        has_acted = done or LogEntry.objects.filter(user=user).exists()
        return Staying(
            self.signals(user),
            self.name_in_ledger(user),
            self.name_in_scores(user),
            user.is_staff or has_acted,
        )


staying_rows = StayingRows()
