"""Who signs up and is never heard of again leaves nothing; whoever else there is stays."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.conf import settings as configured
from django.contrib.admin.models import ADDITION, LogEntry
from django.contrib.auth.models import Group
from django.contrib.contenttypes.models import ContentType
from django.core.cache import cache
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from accounts.models import User
from accounts.pruning import old_rows, remove_some
from tests.factories import make_account, make_tiers, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.services]
PASSWORD = "a long walk 7"
KEPT = timedelta(days=7)


def sign_up(name: str, client: Client | None = None) -> int:
    fields = {"username": name, "email": f"{name}@example.com", "password1": PASSWORD, "password2": PASSWORD}
    return (client or Client()).post("/accounts/signup/", fields).status_code


@pytest.fixture
def stranger(settings: Settings) -> User:
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    make_tiers()
    cache.clear()
    assert sign_up("eve") == 302
    return User.objects.get(username="eve")


def removed(after: timedelta = KEPT + timedelta(hours=1)) -> int:
    """How many users, by all that is pruned."""
    before = User.objects.count()
    for old in old_rows(timezone.now() + after):
        remove_some(old)
    return before - User.objects.count()


def test_who_never_confirms_is_forgotten_but_not_whom_a_command_made(
    stranger: User, settings: Settings
) -> None:
    make_user("robot")
    settings.UNCONFIRMED_KEPT_DAYS = 0
    assert removed(timedelta(days=4_000)) == 0
    settings.UNCONFIRMED_KEPT_DAYS = 7
    assert removed(KEPT - timedelta(hours=1)) == 0
    assert removed() == 1
    assert not User.objects.filter(pk=stranger.pk).exists()
    assert not EmailAddress.objects.filter(email="eve@example.com").exists()
    # The name is free again.
    assert sign_up("eve") == 302


def confirm(user: User) -> None:
    EmailAddress.objects.filter(user=user).update(verified=True)


def log_in(user: User) -> None:
    User.objects.filter(pk=user.pk).update(last_login=timezone.now())


def lock_out(user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)


def make_staff(user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_staff=True)


def put_into_a_group(user: User) -> None:
    user.groups.add(Group.objects.create(name="desk"))


def give_a_factor(user: User) -> None:
    Authenticator.objects.create(user=user, type="totp", data={})


def note_by_staff(user: User) -> None:
    LogEntry.objects.create(
        user=make_user("staff"),
        content_type=ContentType.objects.get_for_model(User),
        object_id=str(user.pk),
        action_flag=ADDITION,
    )


@pytest.mark.parametrize(
    "act",
    [confirm, log_in, lock_out, make_staff, put_into_a_group, give_a_factor, note_by_staff, make_account],
)
def test_who_has_a_reason_stays(act: Callable[[User], object], stranger: User) -> None:
    act(stranger)
    assert removed() == 0
    assert User.objects.filter(pk=stranger.pk).exists()


def test_one_network_signs_up_so_many_times_a_day(settings: Settings) -> None:
    make_tiers()
    cache.clear()
    assert "100/d/ip" in configured.ACCOUNT_RATE_LIMITS["signup"]
    settings.ACCOUNT_RATE_LIMITS = configured.ACCOUNT_RATE_LIMITS | {"signup": "20/m/ip,3/d/ip"}
    places = [Client(REMOTE_ADDR=f"2001:db8:1:2::{number}") for number in range(4)]
    assert [sign_up(f"bot{number}", place) for number, place in enumerate(places)] == [302, 302, 302, 429]
    assert sign_up("bot4", Client(REMOTE_ADDR="2001:db8:1:3::1")) == 302
