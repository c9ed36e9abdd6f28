"""The demo's people: accounts with one key per tier, staff, and publishers."""

from django.conf import settings
from django.contrib.auth.models import Permission
from django.db import transaction

from accounts.key_text import derive_key
from accounts.keys import issue_key
from accounts.models import Account, ApiKey, Tier, User
from accounts.secrets import possible_digests
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from signals_feed.publishing import is_free_for_demo

from . import publisher_rules

STAFF = "demo-staff"
PUBLISHERS = ("aurora_fx", "northbank", "delta_nine", "quiet_river")


def demo_keys() -> dict[str, str]:
    """One for each tier. They are derived from the secret of the installation, so they stay the same."""
    return {tier: derive_key(settings.SECRET_KEY, f"demo {tier}") for tier in ("free", "pro", "premium")}


@transaction.atomic
def seed_people() -> None:
    for tier, secret in demo_keys().items():
        account = _account(f"demo-{tier}", Tier.objects.get(name=tier))
        if account.is_demo:
            _offer_key(account, secret)
    free = Tier.objects.get(name="free")
    permission = Permission.objects.get(codename="publish_signal")
    for name in (*PUBLISHERS, *(publisher.name for publisher in publisher_rules.PUBLISHERS)):
        if not User.objects.filter(username=name).exists() and not is_free_for_demo(name):
            continue
        account = _account(name, free)
        if account.is_demo:
            account.user.user_permissions.add(permission)
    _seed_staff()


def hold_demo() -> bool:
    """Locks the demo until the transaction ends. False if it was removed."""
    return bool(Account.objects.select_for_update().filter(is_demo=True).order_by("pk")[:1])


def _account(username: str, tier: Tier) -> Account:
    """A real person who has the name already keeps it."""
    user, is_new = User.objects.get_or_create(username=username)
    if is_new:
        user.set_unusable_password()
        user.save()
    return Account.objects.get_or_create(user=user, defaults={"tier": tier, "is_demo": is_new})[0]


def _offer_key(account: Account, secret: str) -> None:
    known = ApiKey.objects.filter(digest__in=possible_digests(secret))
    if not known.exists():
        issue_key(account, "demo key", by="demo", secret=secret)
    elif known.exclude(revoked_at=None, expires_at=None).update(revoked_at=None, expires_at=None):
        ControlEvent.objects.publish(EventKind.ACCOUNT_CHANGED, by="demo", account=account.pk)


def _seed_staff() -> None:
    is_new = not User.objects.filter(username=STAFF).exists()
    account = _account(STAFF, Tier.objects.get(name="premium"))
    user = account.user
    if account.is_demo and is_new:
        user.is_staff = user.is_superuser = True
        user.save()
    elif account.is_demo and user.has_usable_password():
        # An earlier version printed a password. Now they log in by a link.
        user.set_unusable_password()
        user.save()
