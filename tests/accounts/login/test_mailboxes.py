"""Email addresses: who may add one, who hears of it, and which of them reset the password."""

from __future__ import annotations

import re

import pytest
from allauth.account.models import EmailAddress
from django.core import mail
from django.test import Client

from accounts.models import User
from core.events.outbox import ControlEvent
from tests.factories import make_account, make_user

from .factors import PASSWORD, log_in

pytestmark = pytest.mark.django_db
PAGE, CONFIRM = "/accounts/email/", "/accounts/reauthenticate/"
OWN, OTHER = "ada@example.com", "eve@tickwire.test"


@pytest.fixture
def ada() -> User:
    user = make_user("ada", PASSWORD)
    make_account(user)
    EmailAddress.objects.create(user=user, email=OWN, verified=True, primary=True)
    return user


@pytest.fixture
def page(ada: User) -> Client:
    return log_in("ada")


def add(client: Client, address: str = OTHER) -> str:
    return str(client.post(PAGE, {"action_add": "", "email": address}).headers.get("Location", ""))


def add_as_owner(client: Client) -> None:
    client.post(CONFIRM, {"password": PASSWORD})
    add(client)


def addresses() -> dict[str, tuple[bool, bool]]:
    return {each.email: (each.verified, each.primary) for each in EmailAddress.objects.all()}


def link_to_confirm() -> str:
    (found,) = {
        str(link)
        for sent in mail.outbox
        if OTHER in sent.to
        for link in re.findall(r"/accounts/confirm-email/\S+", str(sent.body))
    }
    return found


def test_link_of_somebody_else_logs_nobody_out_until_it_is_confirmed(page: Client) -> None:
    add_as_owner(page)
    link = link_to_confirm()
    make_user("bob", PASSWORD)
    bob = log_in("bob")

    shown = bob.get(link).text

    assert "You are logged in as bob. Confirming the address logs you out." in shown
    assert "logs you out" not in page.get(link).text
    assert bob.get("/settings/keys").status_code == 200
    assert addresses()[OTHER] == (False, False)
    bob.post(link)
    assert bob.get("/settings/keys").status_code == 302
    assert addresses()[OTHER] == (True, False)


def mails_to(address: str) -> list[str]:
    return [str(sent.subject) for sent in mail.outbox if sent.to == [address]]


@pytest.mark.parametrize("act", ["action_add", "action_remove", "action_primary"])
def test_open_session_alone_changes_no_address(page: Client, ada: User, act: str) -> None:
    if act != "action_add":
        EmailAddress.objects.create(user=ada, email=OTHER, verified=True)
    before = addresses()

    answer = page.post(PAGE, {act: "", "email": OTHER})

    assert answer["Location"].startswith(CONFIRM)
    assert addresses() == before
    page.post(answer["Location"], {"password": PASSWORD, "next": PAGE})
    assert addresses() != before


def test_primary_address_hears_of_another_and_events_do_not_tell_which(page: Client) -> None:
    add_as_owner(page)
    assert mails_to(OWN) == ["An email address was added to your Tickwire account"]
    page.post(link_to_confirm())
    assert mails_to(OWN)[1:] == ["An email address of your Tickwire account was confirmed"]
    told = [str(sent.body) for sent in mail.outbox if sent.to == [OWN]]
    assert all(OTHER in text and "A new password does not remove the address." in text for text in told)
    page.post(PAGE, {"action_primary": "", "email": OTHER})
    page.post(PAGE, {"action_remove": "", "email": OWN})
    found = re.findall(r"(?:An|The primary) email address [\w ]+\.", page.get("/settings/events").text)
    assert found == [
        "An email address was removed.",
        "The primary email address changed.",
        "An email address was confirmed.",
        "An email address was added.",
    ]
    assert OTHER not in str(list(ControlEvent.objects.values()))


def test_address_resets_the_password_once_it_is_confirmed_or_if_one_signed_up_with_it(page: Client) -> None:
    EmailAddress.objects.update(verified=False)
    Client().post("/accounts/password/reset/", {"email": OWN})
    assert mails_to(OWN) == ["Choose a new password for Tickwire"]
    EmailAddress.objects.update(verified=True)
    add_as_owner(page)
    for is_confirmed in (False, True):
        Client().post("/accounts/password/reset/", {"email": OTHER})
        assert mails_to(OTHER)[-1].startswith("Choose a new password") is is_confirmed
        page.post(link_to_confirm())
