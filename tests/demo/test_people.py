"""Demo people follow from the secret, and take nothing from real ones."""

from __future__ import annotations

import pytest
from pytest_django import Settings

from accounts.key_text import is_well_formed
from accounts.models import Account, ApiKey, User
from demo.people import PUBLISHERS, STAFF, demo_keys, seed_people
from tests.factories import make_account, make_user


def test_same_secret_has_the_same_people(settings: Settings) -> None:
    settings.SECRET_KEY = "one secret"
    first = demo_keys()
    settings.SECRET_KEY = "one secret"

    assert demo_keys() == first


def test_another_secret_shares_no_key(settings: Settings) -> None:
    settings.SECRET_KEY = "one secret"
    one = demo_keys()
    settings.SECRET_KEY = "another secret"
    other = demo_keys()

    assert not set(one.values()) & set(other.values())


def test_each_tier_has_a_whole_key_of_its_own() -> None:
    keys = demo_keys()

    assert list(keys) == ["free", "pro", "premium"]
    assert len(set(keys.values())) == 3
    assert all(is_well_formed(secret) for secret in keys.values())


@pytest.mark.django_db
def test_seeding_again_adds_nobody() -> None:
    seed_people()
    before = User.objects.count(), Account.objects.count(), ApiKey.objects.count()

    seed_people()

    assert (User.objects.count(), Account.objects.count(), ApiKey.objects.count()) == before


@pytest.mark.django_db
def test_publishers_cannot_log_in() -> None:
    seed_people()

    assert not any(user.has_usable_password() for user in User.objects.filter(username__in=PUBLISHERS))


@pytest.mark.django_db
def test_revoked_demo_key_works_after_the_next_start() -> None:
    seed_people()
    ApiKey.objects.update(revoked_at="2026-11-18T12:00Z")

    seed_people()

    assert not ApiKey.objects.exclude(revoked_at=None).exists()


@pytest.mark.django_db
def test_person_with_the_name_of_a_demo_account_gets_no_demo_key() -> None:
    account = make_account(make_user("demo-pro"))

    seed_people()

    assert not account.keys.exists()


@pytest.mark.django_db
def test_person_with_the_name_of_the_demo_staff_gets_no_power() -> None:
    make_account(make_user(STAFF))

    seed_people()

    user = User.objects.get(username=STAFF)
    assert not user.is_staff
    assert not user.has_usable_password()
