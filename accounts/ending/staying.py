"""What stays of a person when their account is deleted, for the page that asks and the one after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from django.contrib.admin.models import LogEntry

from accounts.models import User

from .account_data import done_to_others


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
        has_acted = LogEntry.objects.filter(user=user).exists() or any(done_to_others(user))
        return Staying(
            self.signals(user),
            self.name_in_ledger(user),
            self.name_in_scores(user),
            user.is_staff or has_acted,
        )


staying_rows = StayingRows()
