"""What staff and customers may: the ready roles by their names, and the right to publish signals."""

from __future__ import annotations

from django.contrib.auth.models import Permission
from django.db.models import Q

from accounts.models import User

READY_ROLE = "Role: "
"""How the names of groups begin that `migrate` keeps as they are."""


class CustomerRight:
    """A permission that gives no power over others: whoever has it stays within reach of staff who have not.
    The room that asks for it stands above, so its name is handed down."""

    permission = ""

    def is_it(self) -> Q:
        app, _, codename = self.permission.partition(".")
        return Q(content_type__app_label=app, codename=codename)

    def is_held_by(self, user: User) -> bool:
        """Of their own. A group or being a superuser may give it as well."""
        return user.user_permissions.filter(self.is_it()).exists()

    def set_for(self, user: User, *, is_held: bool) -> None:
        change = user.user_permissions.add if is_held else user.user_permissions.remove
        change(*Permission.objects.filter(self.is_it()))


publishing_right = CustomerRight()
