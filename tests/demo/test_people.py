"""Demo people follow from the secret, and take nothing from real ones."""

from __future__ import annotations

import pytest
from pytest_django import Settings

from accounts.key_text import is_well_formed
from accounts.models import Account, ApiKey, User
from demo.people import PUBLISHERS, STAFF, demo_keys, seed_people
from tests.factories import make_account, make_user


def test_keys_follow_from_the_secret_and_from_no_other(settings: Settings) -> None:
    settings.SECRET_KEY = "one secret"
    keys = demo_keys()
    assert list(keys) == ["free", "pro", "premium"]
    assert len(set(keys.values())) == 3
    assert all(is_well_formed(secret) for secret in keys.values())
    assert demo_keys() == keys
    settings.SECRET_KEY = "another secret"
    assert not set(demo_keys().values()) & set(keys.values())


@pytest.mark.django_db
def test_seeding_again_adds_nobody_and_a_revoked_demo_key_works_again() -> None:
    seed_people()
    before = User.objects.count(), Account.objects.count(), ApiKey.objects.count()
    ApiKey.objects.update(revoked_at="2026-11-18T12:00Z")
    seed_people()
    assert (User.objects.count(), Account.objects.count(), ApiKey.objects.count()) == before
    assert not ApiKey.objects.exclude(revoked_at=None).exists()
    assert not any(user.has_usable_password() for user in User.objects.filter(username__in=PUBLISHERS))


@pytest.mark.django_db
def test_person_with_the_name_of_a_demo_account_gets_neither_key_nor_power() -> None:
    account = make_account(make_user("demo-pro"))
    make_account(make_user(STAFF))
    seed_people()
    assert not account.keys.exists()
    user = User.objects.get(username=STAFF)
    assert not user.is_staff
    assert not user.has_usable_password()
