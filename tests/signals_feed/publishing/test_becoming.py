"""Becoming a publisher: asked for in the panel, decided by staff, told by mail."""

from __future__ import annotations

from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.contrib.auth.models import Permission
from django.core import mail
from django.test import Client

from accounts.models import Account, User
from accounts.rights import MAY_PUBLISH, publishing_right
from core.events.outbox import ControlEvent
from signals_feed.publishers.requests import (
    MOST_A_DAY,
    PublisherRequest,
    PublisherRequestRefused,
    accept_request,
    ask_to_publish,
    decline_request,
    withdraw_request,
    withdrawn_at,
)
from tests.accounts.back_office.office import Office, address
from tests.accounts.panel.test_look import assert_is_ours
from tests.factories import NOON, make_account, make_user
from tests.signals_feed.published_signals import make_published

pytestmark = [pytest.mark.django_db, pytest.mark.services]
PAGE, ASK = "/settings/signals", "/settings/signals/request"


@pytest.fixture
def ada() -> Account:
    return make_account(make_user("ada"))


@pytest.fixture
def page(ada: Account) -> Client:
    client = Client()
    client.force_login(ada.user)
    return client


@pytest.fixture
def boss() -> User:
    return make_user("boss", is_staff=True, is_superuser=True)


def asked(account: Account, why: str = "Gold, by hand.") -> PublisherRequest:
    return ask_to_publish(account, why, by=account.user)


def may_publish(account: Account) -> bool:
    return User.objects.get(pk=account.user_id).has_perm(MAY_PUBLISH)


def kinds() -> list[str]:
    found = ControlEvent.objects.filter(kind__startswith="publishing.").order_by("position")
    return list(found.values_list("kind", flat=True))


def test_page_warns_whoever_looks_like_a_publisher(page: Client) -> None:
    warning = "looks like that of another publisher"
    assert warning not in page.get(PAGE).text
    make_published(user=make_user("a-da"))
    assert warning in page.get(PAGE).text


def test_form_sends_the_request_once_and_the_page_says_that_it_waits(page: Client, ada: Account) -> None:
    assert Client().post(ASK, {"why": "x"})["Location"].startswith("/accounts/login/")
    answer = page.post(ASK, {"why": "Gold, by hand."}, follow=True)
    assert "Your request has been sent to the staff." in answer.text
    assert "You asked to publish" in answer.text
    assert f'action="{ASK}"' not in answer.text
    assert_is_ours(answer.text)
    assert "with the staff already" in page.post(ASK, {"why": "Again."}, follow=True).text
    request = PublisherRequest.objects.get()
    assert (request.account, request.why, request.state) == (ada, "Gold, by hand.", "open")
    assert kinds() == ["publishing.asked"]


@pytest.mark.parametrize("why", ["", "x" * 501, "two\nlines", "\u202etxt"])
def test_request_without_a_plain_reason_is_not_sent(page: Client, why: str) -> None:
    assert page.post(ASK, {"why": why}).status_code == 400
    assert not PublisherRequest.objects.exists()


def test_who_may_publish_already_asks_for_nothing(ada: Account) -> None:
    ada.user.user_permissions.add(Permission.objects.get(codename="publish_signal"))
    with pytest.raises(PublisherRequestRefused, match="already"):
        ask_to_publish(ada, "x", by=User.objects.get(pk=ada.user_id))


def test_so_many_requests_a_day_are_the_most(ada: Account) -> None:
    for _ in range(MOST_A_DAY):
        withdraw_request(asked(ada), by=ada.user)
    with pytest.raises(PublisherRequestRefused, match="tomorrow"):
        asked(ada)


def test_own_request_alone_is_withdrawn(page: Client, ada: Account) -> None:
    request, another = asked(ada), asked(make_account())
    assert page.post(f"{PAGE}/requests/{another.pk}/withdraw").status_code == 404
    assert "has been withdrawn" in page.post(f"{PAGE}/requests/{request.pk}/withdraw", follow=True).text
    states = PublisherRequest.objects.order_by("pk").values_list("state", flat=True)
    assert list(states) == ["withdrawn", "open"]
    assert "already been decided" in page.post(f"{PAGE}/requests/{request.pk}/withdraw", follow=True).text


def test_declined_request_says_why_and_another_may_be_sent(page: Client, ada: Account, boss: User) -> None:
    decline_request(asked(ada), "Tell us more.", by=boss)
    assert not may_publish(ada)
    shown = page.get(PAGE).text
    assert shown.index("Tell us more.") < shown.index(f'action="{ASK}"')
    assert "boss" not in shown


def test_of_two_who_decide_the_second_is_told(ada: Account, boss: User) -> None:
    request = asked(ada)
    other = PublisherRequest.objects.get(pk=request.pk)
    accept_request(request, by=boss)
    with pytest.raises(PublisherRequestRefused, match="already been decided"):
        decline_request(other, "No.", by=boss)


@pytest.mark.parametrize("is_confirmed", [True, False])
def test_page_promises_a_mail_to_a_confirmed_address_alone(
    page: Client, ada: Account, boss: User, is_confirmed: bool
) -> None:
    EmailAddress.objects.create(user=ada.user, email="ada@example.com", primary=True, verified=is_confirmed)
    assert ("answer it here and by email to ada@example.com." in page.get(PAGE).text) is is_confirmed
    Office(boss).post(address(PublisherRequest, "accept", asked(ada).pk), answered="1")
    assert len(mail.outbox) == is_confirmed


def test_right_that_went_is_told_with_its_date_if_staff_withdrew_it(page: Client, ada: Account) -> None:
    for is_held in (True, False, True):
        publishing_right.switch(ada.user, is_held=is_held, by="boss")
    assert withdrawn_at(ada) is None
    signal = make_published(user=ada.user)
    ada.user.user_permissions.clear()
    shown = page.get(PAGE).text
    assert "Your account can no longer publish signals." in shown
    assert "Staff withdrew" not in shown
    publishing_right.switch(ada.user, is_held=True, by="boss")
    publishing_right.switch(ada.user, is_held=False, by="boss")
    ControlEvent.objects.filter(kind="publishing.revoked").update(created_at=NOON)
    shown = page.get(PAGE).text
    assert "Staff withdrew your right to publish signals" in shown
    assert "18 Nov 2026, 12:00 UTC" in shown
    assert f'action="{PAGE}/{signal.pk}/close"' in shown
    assert page.get(f"{PAGE}/live").json()["signals"][0]["id"] == str(signal.pk)


DECISIONS: dict[str, tuple[dict[str, Any], bool, str, str]] = {
    "accept": ({}, True, "You can now publish", "Publish your first one here:\nhttp"),
    "decline": ({"answer": "Tell us “more”."}, False, "was declined", "Tell us “more”."),
}


@pytest.mark.parametrize("act", DECISIONS)
def test_staff_decide_in_the_back_office_and_a_mail_tells(
    page: Client, ada: Account, boss: User, act: str
) -> None:
    fields, is_allowed, subject, words = DECISIONS[act]
    request = asked(ada)
    EmailAddress.objects.create(user=ada.user, email="ada@example.com", primary=True, verified=True)
    office = Office(boss)
    for _ in range(2):
        office.post(address(PublisherRequest, act, request.pk), answered="1", **fields)
    assert may_publish(ada) is is_allowed
    assert ("New signal" in page.get(PAGE).text) is is_allowed
    assert kinds() == ["publishing.asked", f"publishing.{act}{'d' if act == 'decline' else 'ed'}"]
    request.refresh_from_db()
    assert request.decided_by == boss
    (sent,) = mail.outbox
    assert sent.to == ["ada@example.com"]
    assert subject in sent.subject
    assert words in sent.body


def test_nobody_accepts_themselves(ada: Account) -> None:
    ada.user.is_staff = True
    ada.user.save()
    ada.user.user_permissions.set(Permission.objects.filter(codename__endswith="publisherrequest"))
    request = asked(ada)
    Office(ada.user).post(address(PublisherRequest, "accept", request.pk), answered="1")
    assert not may_publish(ada)
