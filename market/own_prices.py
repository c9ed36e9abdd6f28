"""Who may make the prices of an instrument: owners of ingest keys, and staff who decide what its prices are.
They publish no signals on it, until thirty days after they could do so for the last time.

Keys say it themselves, for they are never deleted. Powers of staff come and go in many ways, so those who
have them are noted before each change of powers that Django tells, and each hour."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.contrib.auth.models import Group, Permission
from django.db.models import Q, QuerySet
from django.dispatch import Signal
from django.utils import timezone

from accounts.models import Account, User

from .models import FormerPriceRight, IngestKey

ENDED_FOR = timedelta(days=30)

# To issue keys, or to change sources, hours, sizes and tolerances, to withhold or to release.
POWERS: Mapping[str, tuple[str, ...]] = {
    "market": ("add_ingestkey", "change_ingestkey"),
    "instruments": (
        *("add_instrument", "change_instrument", "add_tradingcalendar", "change_tradingcalendar"),
        *("add_withheldsource", "change_withheldsource", "delete_withheldsource"),
    ),
}
FLAGS = frozenset(("is_active", "is_staff", "is_superuser"))


def covers(symbols: str, symbol: str) -> bool:
    """Without any, those of a key are all."""
    return not symbols or symbol in symbols.split()


class PriceRight(NamedTuple):
    symbols: str
    """Empty: all."""
    ended_at: datetime | None = None
    """None: it is held now."""

    def forbids(self, symbol: str, now: datetime) -> bool:
        return covers(self.symbols, symbol) and (self.ended_at is None or now - self.ended_at < ENDED_FOR)


def makes_price(user: User, symbol: str) -> bool:
    """Whether they could make its price now or within the last thirty days."""
    now = timezone.now()
    return any(right.forbids(symbol, now) for right in rights_of(user))


def rights_of(user: User) -> list[PriceRight]:
    keys = IngestKey.objects.filter(account__user=user).values_list("symbols", "revoked_at")
    former = FormerPriceRight.objects.filter(user=user).values_list("symbols", "known_at")
    held = [PriceRight("")] if deciders().filter(pk=user.pk).exists() else []
    return [*held, *(PriceRight(*each) for each in (*keys, *former))]


def powers() -> QuerySet[Permission]:
    wanted = Q()
    for app, codenames in POWERS.items():
        wanted |= Q(content_type__app_label=app, codename__in=codenames)
    return Permission.objects.filter(wanted)


def deciders() -> QuerySet[User]:
    """Superusers, and staff with one of these powers."""
    given = Q(user_permissions__in=powers()) | Q(groups__permissions__in=powers())
    found = User.objects.filter(Q(is_superuser=True) | Q(is_staff=True) & given, is_active=True)
    return User.objects.filter(pk__in=found.values("pk"))


def note_deciders(users: QuerySet[User] | None = None) -> None:
    """They have their powers still: whatever becomes of these, that is remembered."""
    for user in deciders() if users is None else users:
        note(user)


def note(user: User, symbols: str = "") -> None:
    FormerPriceRight.objects.update_or_create(
        user=user, symbols=symbols, defaults={"known_at": timezone.now()}
    )


def forget_old() -> None:
    FormerPriceRight.objects.filter(known_at__lte=timezone.now() - ENDED_FOR).delete()


def note_before_change(action: str = "pre_remove", **_: Any) -> None:
    """A user loses permissions or groups, or a group ends."""
    if action in ("pre_remove", "pre_clear"):
        note_deciders()


def note_before_save(instance: User, update_fields: Collection[str] | None = None, **_: Any) -> None:
    if instance.pk is not None and (update_fields is None or FLAGS & set(update_fields)):
        note_deciders(deciders().filter(pk=instance.pk))


price_right_granted = Signal()
"""A `user` is to make the prices of these `symbols`, empty for all. A receiver, which a room above connects,
raises PowerRefused if that may not be now."""


def refuse_open(user: User, symbols: str = "") -> None:
    """Within the transaction that grants the right. Publications of theirs wait until it ends."""
    User.objects.select_for_update(no_key=True).get(pk=user.pk)
    price_right_granted.send(User, user=user, symbols=symbols)


def refuse_powers(
    user: User,
    *,
    is_staff: bool,
    is_superuser: bool,
    groups: Iterable[Group],
    permissions: Iterable[Permission],
    **_: Any,
) -> None:
    """They are to have these powers, which may be the first of this kind."""
    given = Q(group__in=groups) | Q(pk__in=[permission.pk for permission in permissions])
    decides = is_superuser or (is_staff and powers().filter(given).exists())
    if decides and user.pk is not None and not deciders().filter(pk=user.pk).exists():
        refuse_open(user)


def refuse_role(group: Group, permissions: Iterable[Permission], **_: Any) -> None:
    """All of the group are to have these."""
    if powers().filter(pk__in=[permission.pk for permission in permissions]).exists():
        for user in User.objects.filter(groups=group, is_staff=True).exclude(pk__in=deciders().values("pk")):
            refuse_open(user)


OWN_KEY = ("name", "prefix", "symbols", "created_at", "last_used_at", "revoked_at")


def own_ingest_keys(user: User) -> Iterable[Mapping[str, object]]:
    """For the file of their data."""
    rows: Iterable[Mapping[str, object]] = IngestKey.objects.filter(account__user=user).values(*OWN_KEY)
    return rows


def own_price_rights(user: User) -> Iterable[Mapping[str, object]]:
    return FormerPriceRight.objects.filter(user=user).order_by("pk").values("symbols", "known_at")


def account_of(username: str) -> Account | None:
    user = User.objects.filter(username=username).first()
    return None if user is None else Account.objects.for_user(user)
