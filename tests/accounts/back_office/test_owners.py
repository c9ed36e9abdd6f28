"""Owners hear by mail, and read among their events, what staff did to what opens their account."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.core import mail

from accounts.models import Account, ApiKey, User
from tests.accounts.browser import logged_in
from tests.factories import make_account, make_key, make_user
from tests.signals_feed.published_signals import make_published

from .office import Office, add_to, address, change

pytestmark = pytest.mark.django_db(transaction=True)
EMAIL, NEW = "ada@example.com", "a longer walk 8"


@pytest.fixture
def ada() -> Account:
    user = make_user("ada")
    EmailAddress.objects.create(user=user, email=EMAIL, verified=True, primary=True)
    return make_account(user)


def issue(office: Office, ada: Account) -> object:
    return office.post(add_to(ApiKey), account=ada.pk, name="laptop", answered="1")


def roll(office: Office, ada: Account) -> object:
    make_key(ada)
    key = ApiKey.objects.get(account=ada)
    return office.post(address(ApiKey, "roll", key.pk), answered="1", overlap_hours="1")


def lock(office: Office, ada: Account) -> object:
    return office.post(change(ada.user), username="ada", email=EMAIL, is_active="")


def set_password(office: Office, ada: Account) -> object:
    page = f"/admin/accounts/user/{ada.user.pk}/password/"
    return office.post(page, password1=NEW, password2=NEW, usable_password="true")


def take_factor(office: Office, ada: Account) -> object:
    factor = Authenticator.objects.create(user=ada.user, type="totp", data={})
    return office.post(address(Authenticator, "delete", factor.pk), post="yes")


def cancel(office: Office, ada: Account) -> object:
    signal = make_published(user=ada.user)
    return office.post(address(signal, "cancel", signal.pk), answered="1", reason="Wrong symbol.")


ACTS: dict[str, Callable[[Office, Account], object]] = {
    "Issued.": issue,
    "Rolled:": roll,
    "May log in (now off)": lock,
    "Changed password": set_password,
    "Second factor Authenticator app: Deleted.": take_factor,
    "was cancelled: Wrong symbol.": cancel,
}


EVENTS = {
    "Changed password": "The password changed. By staff",
    "Second factor Authenticator app: Deleted.": "An authenticator app was removed. By staff",
}


def told() -> str:
    return "\n".join(str(sent.body) for sent in mail.outbox if sent.to == [EMAIL])


@pytest.mark.parametrize("words", ACTS)
def test_owner_is_told_by_mail_and_events_say_by_staff(office: Office, ada: Account, words: str) -> None:
    ACTS[words](office, ada)
    assert words in told()
    if words in EVENTS:
        page = logged_in(User.objects.get(pk=ada.user.pk)).get("/settings/events").text
        assert EVENTS[words] in " ".join(page.split()).replace('<span class="hint">', "")


def test_staff_are_not_told_of_what_they_do_themselves() -> None:
    boss = make_user("boss", is_staff=True, is_superuser=True)
    EmailAddress.objects.create(user=boss, email=boss.email, verified=True, primary=True)
    issue(Office(boss), make_account(boss))
    assert mail.outbox == []
