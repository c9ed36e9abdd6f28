"""API keys in the back office."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib import admin

from accounts.key_text import is_well_formed
from accounts.keys.issuing import MAX_USABLE_KEYS, MOST_KEYS_A_DAY, issue_key, revoke_key
from accounts.models import Account, ApiKey
from core.events.kinds import EventKind
from tests.factories import make_account, make_key, make_user

from .office import Office, add_to, address, change, list_of, logged, published, said, text_of
from .rows import SECOND_FACTOR, one_of_each

pytestmark = pytest.mark.django_db


@pytest.fixture
def account() -> Account:
    return make_account(make_user("ada"))


@pytest.fixture
def key(account: Account) -> ApiKey:
    return issue_key(account, "test", by="test")[0]


def shown(answer: Any) -> str:
    """The secret on the one-time page."""
    return str(re.findall(r'id="secret" value="([^"]+)"', text_of(answer))[0])


def issue(office: Office, account: Account) -> Any:
    return office.post(add_to(ApiKey), account=account.pk, name="laptop", answered="1")


def roll(office: Office, key: ApiKey, hours: str = "1") -> Any:
    return office.post(address(key, "roll", key.pk), overlap_hours=hours, answered="1")


def test_issuing_shows_the_key_once_and_tells_who_did_it(office: Office, account: Account) -> None:
    answer = issue(office, account)
    secret, key = shown(answer), ApiKey.objects.get()
    assert is_well_formed(secret)
    assert "no-store" in answer.headers["Cache-Control"]
    assert (key.account, key.name, key.prefix) == (account, "laptop", secret[:16])
    assert logged(key) == [("boss", "Issued.")]
    assert published() == [(EventKind.KEY_ISSUED, "boss")]
    # Of its fields, only the name can be edited.
    forged = {"digest": "0" * 64, "prefix": "x", "revoked_at": "", "account": make_account().pk}
    for name in ("renamed", "two\nlines"):
        office.post(change(key), name=name, **forged)
    kept = ApiKey.objects.get()
    assert (kept.digest, kept.prefix, kept.account) == (key.digest, key.prefix, account)
    assert kept.name == "renamed"


def test_staff_issue_and_roll_for_whoever_had_too_many_today(office: Office, account: Account) -> None:
    for number in range(MOST_KEYS_A_DAY):
        revoke_key(issue_key(account, f"{number}", by="ada")[0], by="ada")
    assert is_well_formed(shown(issue(office, account)))
    assert is_well_formed(shown(roll(office, ApiKey.objects.latest("pk"))))


def test_issuing_needs_the_whole_form_and_room_for_a_key(office: Office, account: Account) -> None:
    answer = office.post(add_to(ApiKey), answered="1")
    assert text_of(answer).count("This field is required.") == 2
    office.post(add_to(ApiKey), account=account.pk, name="mine", prefix="tw_live_mine0000", digest="0" * 64)
    assert not ApiKey.objects.exists()
    for _ in range(MAX_USABLE_KEYS):
        make_key(account)
    assert "25 usable keys at most" in text_of(issue(office, account))


@pytest.mark.parametrize("hours", ["0", "72"])
def test_rolling_ends_the_old_key_after_the_overlap_and_tells_who_did_it(
    office: Office, key: ApiKey, hours: str
) -> None:
    secret = shown(roll(office, key, hours))
    key.refresh_from_db()
    successor = ApiKey.objects.exclude(pk=key.pk).get()
    assert successor.prefix == secret[:16]
    assert key.expires_at is not None
    assert round((key.expires_at - successor.created_at).total_seconds() / 3600) == int(hours)
    assert logged(key) == [("boss", f"Rolled: {successor.prefix}… follows.")]
    assert logged(successor) == [("boss", f"Issued to follow {key.prefix}….")]
    assert sorted(published()[-2:]) == [(EventKind.KEY_ISSUED, "boss"), (EventKind.KEY_ROLLED, "boss")]


@pytest.mark.parametrize("hours", ["-1", "73", "", "x"])
def test_an_overlap_out_of_range_or_an_ended_key_rolls_nothing(
    office: Office, key: ApiKey, hours: str
) -> None:
    assert roll(office, key, hours).status_code == 200
    assert ApiKey.objects.get().expires_at is None
    revoke_key(key, by="ada")
    assert "Only an active key can be rolled." in text_of(roll(office, key))


def test_revoking_asks_first_and_happens_once(office: Office, key: ApiKey) -> None:
    other, kept = (issue_key(key.account, "other", by="test")[0] for _ in range(2))
    for answer in (office.get(address(key, "revoke", key.pk)), office.act("revoke_chosen", key)):
        assert "cannot be undone" in text_of(answer)
    assert not ApiKey.objects.exclude(revoked_at=None).exists()
    office.post(address(key, "revoke", key.pk), answered="1")
    assert said(office.answer("revoke_chosen", key, other))[-1] == "What was revoked before stays so."
    assert list(ApiKey.objects.filter(revoked_at=None)) == [kept]
    assert logged(key) == logged(other) == [("boss", "Revoked.")]
    assert published()[-2:] == [(EventKind.KEY_REVOKED, "boss")] * 2


@pytest.mark.served
def test_no_other_page_shows_a_secret_or_its_digest(office: Office, account: Account) -> None:
    rows = one_of_each()
    secret = shown(issue(office, account))
    rows[ApiKey] = key = ApiKey.objects.get(account=account)
    pages = [address(key, "roll", key.pk), address(key, "revoke", key.pk), "/admin/"]
    for model in admin.site._registry:
        row = rows[model]
        pages += [list_of(model), change(row), address(row, "history", row.pk)]
    for page in pages:
        text = text_of(office.get(page))
        assert not any(each in text for each in (secret[16:], key.digest, SECOND_FACTOR)), page
