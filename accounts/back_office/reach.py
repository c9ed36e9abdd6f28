"""Nobody acts on an account that may do more than they may, nor decides about their own tier.

Every page of the back office asks this through `StaffAdmin`: each says by `owner` whose its rows are."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Permission
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest

from accounts.models import Account, User

ITSELF = "pk"
"""The `owner` of pages of users."""
NOBODY = ""
"""The `owner` of rows that are nobody's, or that staff act on whosever they are."""
# No row of a person is more steps away from them.
FARTHEST = 2


def within_reach(of: User) -> QuerySet[User]:
    """Users without a power that `of` lacks. Those locked out keep theirs, for when they are let in again."""
    if of.is_superuser:
        return User.objects.all()
    # As powers are kept, not as they are in force: a locked-out superuser has none just now.
    beyond = Permission.objects.exclude(Q(user=of) | Q(group__user=of))
    return (
        User.objects.filter(is_superuser=False)
        .exclude(user_permissions__in=beyond)
        .exclude(groups__permissions__in=beyond)
    )


def reached(request: HttpRequest, rows: QuerySet[Any], owner: str) -> QuerySet[Any]:
    """Those of the rows that the staff member may act on."""
    staff = staff_of(request)
    if owner == NOBODY or staff.is_superuser:
        return rows
    return rows.filter(**{f"{owner}__in": within_reach(staff).values("pk")})


def staff_of(request: HttpRequest) -> User:
    assert isinstance(request.user, User)  # noqa: S101 - the site lets nobody else in
    return request.user


def owner_of(row: Model, owner: str) -> User | None:
    if owner == NOBODY:
        return None
    found: Any = row
    if owner != ITSELF:
        for step in owner.split("__"):
            found = getattr(found, step)
    return found if isinstance(found, User) else None


def may_act_on(request: HttpRequest, person: User | None) -> bool:
    if person is None or person.pk is None:
        return True
    return within_reach(staff_of(request)).filter(pk=person.pk).exists()


def leads_to_a_person(model: type[Model], steps: int = FARTHEST) -> bool:
    """Whether rows of a model are somebody's, so that their pages must say whose."""
    if model in (User, Account):
        return True
    related = (field.related_model for field in model._meta.concrete_fields if field.is_relation)
    return steps > 0 and any(leads_to_a_person(each, steps - 1) for each in related if isinstance(each, type))
