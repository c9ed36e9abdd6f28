"""Demo accounts with one key per tier, a staff login, and publishers. All follow from the secret."""

from __future__ import annotations

import base64
import hmac
from typing import NamedTuple

from django.conf import settings
from django.contrib.auth.models import Permission
from django.db import transaction

from accounts import keys
from accounts.models import Account, ApiKey, ControlEvent, Tier, User
from accounts.services import issue_key
from signals_feed.house import PUBLISHERS as HOUSE

STAFF = "demo-staff"
PUBLISHERS = ("aurora_fx", "northbank", "delta_nine", "quiet_river")


class DemoPeople(NamedTuple):
    keys: dict[str, str]
    """One key per tier."""
    staff: str
    password: str


def demo_people() -> DemoPeople:
    """The same for as long as the secret of the installation is."""
    digest = hmac.digest(settings.SECRET_KEY.encode(), b"demo staff", "sha256")
    return DemoPeople(
        keys={tier: keys.derive(settings.SECRET_KEY, f"demo {tier}") for tier in ("free", "pro", "premium")},
        staff=STAFF,
        password=base64.b32encode(digest).decode()[:16].lower(),
    )


@transaction.atomic
def seed_people() -> None:
    people = demo_people()
    for tier, secret in people.keys.items():
        account = _account(f"demo-{tier}", Tier.objects.get(name=tier))
        if account.is_demo:
            _offer_key(account, secret)
    for name in PUBLISHERS:
        _account(name, Tier.objects.get(name="free"))
    _seed_house()
    _seed_staff(people)


def _account(username: str, tier: Tier) -> Account:
    """A person who had the name first keeps it, and is not of the demo."""
    user, is_new = User.objects.get_or_create(username=username)
    if is_new:
        user.set_unusable_password()
        user.save()
    return Account.objects.get_or_create(user=user, defaults={"tier": tier, "is_demo": is_new})[0]


def _offer_key(account: Account, secret: str) -> None:
    digest = keys.digest(secret, settings.KEY_PEPPER)
    known = ApiKey.objects.filter(digest=digest)
    if not known.exists():
        issue_key(account, "demo key", by="demo", secret=secret)
    elif known.exclude(revoked_at=None, expires_at=None).update(revoked_at=None, expires_at=None):
        ControlEvent.objects.publish("account.changed", by="demo", account=account.pk)


def _seed_house() -> None:
    permission = Permission.objects.get(codename="publish_signal")
    for publisher in HOUSE:
        account = _account(publisher.name, Tier.objects.get(name="free"))
        if account.is_demo:
            account.user.user_permissions.add(permission)


def _seed_staff(people: DemoPeople) -> None:
    account = _account(people.staff, Tier.objects.get(name="premium"))
    user = account.user
    # Checking a password takes as long as an attacker should need, so only a new login is given one.
    if account.is_demo and not user.has_usable_password():
        user.is_staff = user.is_superuser = True
        user.set_password(people.password)
        user.save()
