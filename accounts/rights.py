"""What staff and customers may: the ready roles by their names, and the right to publish signals."""

from __future__ import annotations

from django.contrib.auth.models import Permission
from django.db import transaction
from django.db.models import Q

from accounts.models import Account, User
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent

READY_ROLE = "Role: "
"""How the names of groups begin that `migrate` keeps as they are."""


MAY_PUBLISH = "signals_feed.publish_signal"


class CustomerRight:
    """A permission that gives no power over others: staff without it can still act on its holders."""

    def __init__(self, permission: str) -> None:
        self.permission = permission

    def is_it(self) -> Q:
        app, _, codename = self.permission.partition(".")
        return Q(content_type__app_label=app, codename=codename)

    def is_held_by(self, user: User) -> bool:
        """Of their own. A group or being a superuser may give it as well."""
        return user.user_permissions.filter(self.is_it()).exists()

    def set_for(self, user: User, *, is_held: bool) -> None:
        change = user.user_permissions.add if is_held else user.user_permissions.remove
        change(*Permission.objects.filter(self.is_it()))

    @transaction.atomic
    def switch(self, user: User, *, is_held: bool, by: str) -> None:
        """As staff do it without a request; the account's events name it."""
        self.set_for(user, is_held=is_held)
        self.announce(user, is_held=is_held, by=by)

    def announce(self, user: User, *, is_held: bool, by: str) -> None:
        """As the last act of the transaction that sets it."""
        account = Account.objects.filter(user=user).values_list("pk", flat=True).first()
        kind = EventKind.PUBLISHING_GRANTED if is_held else EventKind.PUBLISHING_REVOKED
        ControlEvent.objects.publish(kind, by=by, account=account)


publishing_right = CustomerRight(MAY_PUBLISH)


class PowerRefused(Exception):
    """Why a power, or a key, cannot be granted now."""
