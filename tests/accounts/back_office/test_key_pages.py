"""API keys in the back office."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission
from django.db.models import Model

from accounts.key_text import is_well_formed
from accounts.keys.issuing import MOST_KEYS_A_DAY, TooManyKeys, issue_key, revoke_key
from accounts.models import Account, ApiKey
from core.events.kinds import EventKind
from tests.factories import make_account, make_key, make_user

from .office import Office, add_to, address, change, list_of, logged, published, said, text_of
from .rows import SECOND_FACTOR, one_of_each

pytestmark = pytest.mark.django_db


@pytest.fixture
def account() -> Account:
    return make_account(make_user("ada"))


def key_of(account: Account) -> ApiKey:
    make_key(account)
    return ApiKey.objects.latest("pk")


def shown(answer: Any) -> str:
    """The secret on the one-time page."""
    return str(re.findall(r'id="secret" value="([^"]+)"', text_of(answer))[0])


def issue(office: Office, account: Account, name: str = "laptop") -> str:
    return shown(office.post(add_to(ApiKey), account=account.pk, name=name, answered="1"))


def test_issuing_shows_the_key_that_it_made(office: Office, account: Account) -> None:
    secret = issue(office, account)
    key = ApiKey.objects.get()
    assert is_well_formed(secret)
    assert (key.account, key.name, key.prefix) == (account, "laptop", secret[:16])


def test_issuing_tells_who_did_it(office: Office, account: Account) -> None:
    issue(office, account)
    assert logged(ApiKey.objects.get()) == [("boss", "Issued.")]
    assert published() == [(EventKind.KEY_ISSUED, "boss")]


def test_the_one_time_page_is_stored_by_nobody(office: Office, account: Account) -> None:
    answer = office.post(add_to(ApiKey), account=account.pk, name="laptop", answered="1")
    assert "no-store" in answer.headers["Cache-Control"]


def test_staff_issue_and_roll_for_whoever_had_too_many_today(office: Office, account: Account) -> None:
    for number in range(MOST_KEYS_A_DAY):
        revoke_key(issue_key(account, f"{number}", by="ada")[0], by="ada")
    with pytest.raises(TooManyKeys):
        issue_key(account, "another", by="ada")
    assert is_well_formed(issue(office, account))
    key = ApiKey.objects.latest("pk")
    rolled = office.post(address(key, "roll", key.pk), overlap_hours="1", answered="1")
    assert is_well_formed(shown(rolled))


def test_issuing_needs_an_account_and_a_name(office: Office) -> None:
    answer = office.post(add_to(ApiKey), answered="1")
    assert text_of(answer).count("This field is required.") == 2
    assert not ApiKey.objects.exists()


def test_a_raw_form_cannot_make_a_key(office: Office, account: Account) -> None:
    office.post(add_to(ApiKey), account=account.pk, name="mine", prefix="tw_live_mine0000", digest="0" * 64)
    assert not ApiKey.objects.exists()


def test_one_key_too_many_is_refused_in_words(office: Office, account: Account) -> None:
    for _ in range(25):
        make_key(account)
    answer = office.post(add_to(ApiKey), account=account.pk, name="laptop", answered="1")
    assert "25 usable keys at most" in text_of(answer)


@pytest.mark.parametrize("hours", ["0", "72"])
def test_rolling_ends_the_old_key_after_the_overlap(office: Office, account: Account, hours: str) -> None:
    old = key_of(account)
    asked = text_of(office.get(address(old, "roll", old.pk)))
    assert "The old key keeps working for the overlap, then stops." in asked
    secret = shown(office.post(address(old, "roll", old.pk), overlap_hours=hours, answered="1"))
    old.refresh_from_db()
    successor = ApiKey.objects.exclude(pk=old.pk).get()
    assert successor.prefix == secret[:16]
    assert old.expires_at is not None
    assert round((old.expires_at - successor.created_at).total_seconds() / 3600) == int(hours)


def test_rolling_tells_who_did_it(office: Office, account: Account) -> None:
    old = key_of(account)
    office.post(address(old, "roll", old.pk), overlap_hours="1", answered="1")
    successor = ApiKey.objects.exclude(pk=old.pk).get()
    assert logged(old) == [("boss", f"Rolled: {successor.prefix}… follows.")]
    assert logged(successor) == [("boss", f"Issued to follow {old.prefix}….")]
    assert sorted(published()[-2:]) == [(EventKind.KEY_ISSUED, "boss"), (EventKind.KEY_ROLLED, "boss")]


@pytest.mark.parametrize("hours", ["-1", "73", "", "x"])
def test_an_overlap_out_of_range_rolls_nothing(office: Office, account: Account, hours: str) -> None:
    old = key_of(account)
    assert office.post(address(old, "roll", old.pk), overlap_hours=hours, answered="1").status_code == 200
    assert ApiKey.objects.get().expires_at is None


def test_a_revoked_key_cannot_be_rolled(office: Office, account: Account) -> None:
    old = key_of(account)
    office.post(address(old, "revoke", old.pk), answered="1")
    answer = office.post(address(old, "roll", old.pk), overlap_hours="1", answered="1")
    assert "Only an active key can be rolled." in text_of(answer)


def test_revoking_asks_first(office: Office, account: Account) -> None:
    key = key_of(account)
    assert "cannot be undone" in text_of(office.get(address(key, "revoke", key.pk)))
    assert "cannot be undone" in text_of(office.act("revoke_chosen", key))
    assert ApiKey.objects.get().revoked_at is None


def test_the_button_revokes(office: Office, account: Account) -> None:
    key = key_of(account)
    office.post(address(key, "revoke", key.pk), answered="1")
    assert ApiKey.objects.get().revoked_at is not None
    assert logged(key) == [("boss", "Revoked.")]
    assert published()[-1] == (EventKind.KEY_REVOKED, "boss")


def test_the_action_revokes_all_that_were_chosen(office: Office, account: Account) -> None:
    keys = [key_of(account) for _ in range(3)]
    office.answer("revoke_chosen", *keys[:2])
    assert [key.revoked_at is not None for key in ApiKey.objects.order_by("pk")] == [True, True, False]
    assert logged(keys[0]) == logged(keys[1]) == [("boss", "Revoked.")]


def test_revoking_again_changes_nothing_and_says_so(office: Office, account: Account) -> None:
    key = key_of(account)
    office.answer("revoke_chosen", key)
    events = published()
    assert said(office.answer("revoke_chosen", key))[-1] == "What was revoked before stays so."
    assert published() == events


def test_staff_who_may_only_look_cannot_act(account: Account) -> None:
    reader = make_user(is_staff=True)
    reader.user_permissions.add(Permission.objects.get(codename="view_apikey"))
    key, office = key_of(account), Office(reader)
    assert office.get(list_of(ApiKey)).status_code == 200
    assert office.post(address(key, "roll", key.pk), overlap_hours="1", answered="1").status_code == 403
    office.answer("revoke_chosen", key)
    office.post(address(key, "revoke", key.pk), answered="1")
    assert ApiKey.objects.get().revoked_at is None


def test_only_the_name_of_a_key_can_be_edited(office: Office, account: Account) -> None:
    key = key_of(account)
    office.post(
        change(key), name="renamed", digest="0" * 64, prefix="x", revoked_at="", account=make_account().pk
    )
    changed = ApiKey.objects.get()
    assert changed.name == "renamed"
    assert (changed.digest, changed.prefix, changed.account) == (key.digest, key.prefix, account)


@pytest.mark.parametrize("name", ["two\nlines", "back\u202ewards", "x\u2028y"])
def test_a_name_that_would_imitate_its_surroundings_is_refused(
    office: Office, account: Account, name: str
) -> None:
    key = key_of(account)
    answer = office.post(change(key), name=name)
    assert "Enter one line of printable characters." in text_of(answer)
    assert ApiKey.objects.get().name == key.name


def pages_of(model: type[Model], row: Model) -> list[str]:
    return [list_of(model), change(row), address(row, "history", row.pk)]


def test_no_other_page_shows_a_secret_or_its_digest(office: Office, account: Account) -> None:
    rows = one_of_each()
    secret = issue(office, account)
    key = ApiKey.objects.get(account=account)
    rows[ApiKey] = key
    addresses = [page for model in admin.site._registry for page in pages_of(model, rows[model])]
    addresses += [address(key, "roll", key.pk), address(key, "revoke", key.pk), "/admin/"]
    for page in addresses:
        text = text_of(office.get(page))
        assert secret[16:] not in text
        assert key.digest not in text
        assert SECOND_FACTOR not in text
