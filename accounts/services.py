"""Acts on keys and accounts: each changes a row and tells every process in the same transaction."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from . import keys
from .marks import mark_of
from .models import Account, ApiKey, ControlEvent, Tier

DAY = timedelta(days=1)
MAX_OVERLAP_HOURS = 72
MAX_USABLE_KEYS = 25
# A key's row stays for good and what happened to it for 400 days, so that neither may be made without end.
MOST_KEYS_A_DAY = 100
MOST_CLOSED_A_DAY = 500


class TooManyKeys(Exception):
    """The account has as many usable keys as it may have, or was given as many in a day."""


class TooManyClosed(Exception):
    """The account closed as many streams in a day as it may."""


class NotActive(ValueError):
    """The key has ended, or was rolled before."""


@transaction.atomic
def issue_key(
    account: Account, name: str, *, by: str, secret: str = "", most_a_day: int | None = MOST_KEYS_A_DAY
) -> tuple[ApiKey, str]:
    """Make a key and return it with its secret, which exists nowhere else from then on. Without `most_a_day`
    for staff, who help whoever has had too many."""
    # Locking the account makes two requests at once count one after the other.
    Account.objects.select_for_update().get(pk=account.pk)
    now = timezone.now()
    if account.keys.usable(now).count() >= MAX_USABLE_KEYS:
        raise TooManyKeys(f"An account holds {MAX_USABLE_KEYS} usable keys at most. Revoke one first.")
    if most_a_day is not None and account.keys.filter(created_at__gt=now - DAY).count() >= most_a_day:
        raise TooManyKeys(
            f"No more than {most_a_day} keys are issued or rolled for an account in a day. Do so again"
            " tomorrow, or ask the staff. A key that leaked can be revoked at any time."
        )
    secret = secret or keys.generate()
    key = ApiKey.objects.create(
        account=account,
        name=name,
        prefix=keys.prefix(secret),
        digest=keys.digest(secret, settings.KEY_PEPPER),
    )
    _publish("key.issued", key, by)
    return key, secret


@transaction.atomic
def roll_key(
    key: ApiKey, *, overlap_hours: int, by: str, most_a_day: int | None = MOST_KEYS_A_DAY
) -> tuple[ApiKey, str]:
    """Issue a successor; the old key works for the overlap and then no more."""
    if not 0 <= overlap_hours <= MAX_OVERLAP_HOURS:
        raise ValueError(f"The overlap is 0 to {MAX_OVERLAP_HOURS} hours.")
    now = timezone.now()
    until = now + timedelta(hours=overlap_hours)
    rolled = ApiKey.objects.usable(now).filter(pk=key.pk, expires_at=None).update(expires_at=until)
    if not rolled:
        raise NotActive("Only an active key can be rolled.")
    # Events come last: issuing locks the account, and whoever has published waits for no row any more.
    issued = issue_key(key.account, key.name, by=by, most_a_day=most_a_day)
    _publish("key.rolled", key, by, ends_at=until.timestamp())
    return issued


@transaction.atomic
def revoke_key(key: ApiKey, *, by: str) -> bool:
    """End a key everywhere. False if it was revoked before."""
    if not ApiKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=timezone.now()):
        return False
    _publish("key.revoked", key, by)
    return True


@transaction.atomic
def close_stream(account: Account, path: str, opened_at: float, *, by: str) -> None:
    """Wherever it is open; `opened_at` in epoch seconds, to the microsecond."""
    Account.objects.select_for_update().get(pk=account.pk)
    closed = ControlEvent.objects.filter(
        account_id=account.pk, kind="stream.closed", created_at__gt=timezone.now() - DAY
    )
    if closed.count() >= MOST_CLOSED_A_DAY:
        raise TooManyClosed(
            f"You closed {MOST_CLOSED_A_DAY} streams in a day: as many as can be closed here. End the program"
            " that opens them, or revoke its key, which closes them all."
        )
    ControlEvent.objects.publish(
        "stream.closed", by=by, account=account.pk, path=path, opened_at=round(opened_at, 6)
    )


@transaction.atomic
def change_tier(account: Account, tier: Tier, *, by: str) -> None:
    Account.objects.filter(pk=account.pk).update(tier=tier)
    ControlEvent.objects.publish("account.changed", by=by, account=account.pk, tier=tier.name)


@transaction.atomic
def save_tier(tier: Tier, *, by: str) -> None:
    tier.save()
    ControlEvent.objects.publish("tier.changed", by=by, tier=tier.name)


@transaction.atomic
def save_user_access(account: Account, *, by: str) -> None:
    """After a user was locked out or let in again: their keys follow."""
    active = Account.objects.filter(pk=account.pk, user__is_active=True).exists()
    ControlEvent.objects.publish("account.changed", by=by, account=account.pk, active=active)


def _publish(kind: str, key: ApiKey, by: str, **more: Any) -> None:
    """With the mark, by which all processes know that there is such a key, or is none any more."""
    facts = {"account": key.account_id, "key": key.pk, "prefix": key.prefix, "mark": mark_of(key.digest)}
    ControlEvent.objects.publish(kind, by=by, **facts, **more)
