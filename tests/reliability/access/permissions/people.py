"""Six people as one member of staff meets them, each with a row of every kind that is somebody's."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from functools import cache
from typing import Any, NamedTuple

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.contrib.admin.models import ADDITION, LogEntry
from django.contrib.auth.models import Permission
from django.db import connection
from django.db.models import Model

from accounts.models import Account, AiUsage, ApiKey, Tier, TierRequest, User
from signals_feed.publishers.requests import PublisherRequest
from tests.factories import make_account, make_key, make_user

TARGETS = ("self", "plain", "lesser", "equal", "greater", "superuser")
Powers = frozenset[str]
# What staff switch on for customers: no power over others, so whoever has it stays within everybody's reach.
OF_CUSTOMERS: Powers = frozenset({"signals_feed.publish_signal"})
SUPER: Powers = frozenset({"everything"})


class Role(NamedTuple):
    name: str
    powers: Powers = frozenset()
    is_staff: bool = True

    @property
    def is_superuser(self) -> bool:
        return self.powers == SUPER


def every_power() -> Powers:
    rows = Permission.objects.values_list("content_type__app_label", "codename")
    return frozenset(f"{app}.{codename}" for app, codename in rows)


def grant(user: User, powers: Powers) -> None:
    if powers == SUPER:
        user.is_superuser = True
        user.save()
        return
    names = {power.partition(".")[2] for power in powers}
    found = Permission.objects.select_related("content_type").filter(codename__in=names)
    user.user_permissions.set(
        [each for each in found if f"{each.content_type.app_label}.{each.codename}" in powers]
    )


class People:
    """What each may do is said here once more, apart from how the service finds it out."""

    def __init__(self, role: Role) -> None:
        self.role = role
        self.powers = {
            "self": role.powers,
            "plain": frozenset(),
            "lesser": frozenset(),
            "equal": role.powers,
            "greater": self._greater(),
            "superuser": SUPER,
        }
        self.users = {name: self._make(name) for name in TARGETS}

    def _greater(self) -> Powers:
        """One power more. Who has all of them is topped only by a superuser, and be that one locked out."""
        if self.role.is_superuser:
            return SUPER
        more = sorted(every_power() - self.role.powers - OF_CUSTOMERS)
        return self.role.powers | {more[0]} if more else SUPER

    def _make(self, name: str) -> User:
        user = make_user(f"{name}-of-{len(self.role.powers)}", f"{name}-pass-1")
        is_plain = name == "plain" or (name == "self" and not self.role.is_staff)
        user.is_staff, user.is_active = not is_plain, name != "greater"
        user.save()
        grant(user, self.powers[name])
        account = make_account(user)
        make_key(account)
        AiUsage.objects.create(account=account, day=date(2026, 11, 18), used=3)
        EmailAddress.objects.create(user=user, email=user.email)
        Authenticator.objects.create(user=user, type="totp", data={"secret": "x"})
        TierRequest.objects.create(account=account, wanted=Tier.objects.get(name="pro"), why="A bot.")
        PublisherRequest.objects.create(account=account, why="Gold, by hand.")
        LogEntry.objects.log_actions(user.pk, [account], ADDITION, "Made.", single_object=True)
        return user

    def may_be_acted_on(self, target: str) -> bool:
        if self.role.is_superuser:
            return True
        return self.powers[target] != SUPER and self.powers[target] - OF_CUSTOMERS <= self.role.powers

    def row(self, model: type[Model], target: str) -> Model:
        user = self.users[target]
        chosen: dict[type[Model], Any] = {
            User: lambda: user,
            Account: lambda: user.account,
            ApiKey: lambda: user.account.keys.get(),
            AiUsage: lambda: AiUsage.objects.get(account=user.account),
            EmailAddress: lambda: EmailAddress.objects.get(user=user),
            Authenticator: lambda: Authenticator.objects.get(user=user),
            TierRequest: lambda: TierRequest.objects.get(account=user.account),
            PublisherRequest: lambda: PublisherRequest.objects.get(account=user.account),
            LogEntry: lambda: LogEntry.objects.filter(user=user).earliest("pk"),
        }
        found: Model = chosen[model]()
        return found


PERSONAL: tuple[type[Model], ...] = (
    *(User, Account, ApiKey, AiUsage, EmailAddress, Authenticator, TierRequest, LogEntry),
    PublisherRequest,
)


def everything_of_everybody() -> dict[int, list[Any]]:
    """By the key of a user: whatever is theirs and could be turned against them."""
    known: dict[int, list[Any]] = {}
    with connection.cursor() as cursor:
        for statement in _statements():
            cursor.execute(*statement)
            for owner, *facts in cursor.fetchall():
                known.setdefault(owner, []).append(tuple(facts))
    return known


@cache
def _statements() -> list[tuple[str, tuple[Any, ...]]]:
    """Compiled once, because they are asked after each cell."""
    return [query.query.sql_with_params() for query in _facts()]


def _facts() -> Iterator[Any]:
    profile = ("username", "email", "password", "first_name", "last_name")
    yield User.objects.order_by("pk").values_list("pk", *profile, "is_active", "is_staff", "is_superuser")
    for powers in ("user_permissions", "groups", "groups__permissions"):
        yield User.objects.exclude(**{powers: None}).order_by("pk", powers).values_list("pk", powers)
    yield EmailAddress.objects.order_by("pk").values_list("user_id", "email", "verified", "primary")
    yield Authenticator.objects.order_by("pk").values_list("user_id", "pk", "type")
    yield Account.objects.order_by("pk").values_list("user_id", "tier_id", "is_demo")
    keys = ApiKey.objects.order_by("pk")
    yield keys.values_list("account__user_id", "name", "digest", "expires_at", "revoked_at")
    for model in (TierRequest, PublisherRequest):
        yield model._default_manager.order_by("pk").values_list("account__user_id", "state", "answer")


def powers_of_everybody() -> dict[int, tuple[bool, bool, frozenset[int]]]:
    held: dict[int, tuple[bool, bool, frozenset[int]]] = {}
    for user in User.objects.prefetch_related("user_permissions", "groups__permissions"):
        own = {each.pk for each in user.user_permissions.all() if each.codename != "publish_signal"}
        shared = {each.pk for group in user.groups.all() for each in group.permissions.all()}
        held[user.pk] = user.is_staff, user.is_superuser, frozenset(own | shared)
    return held
