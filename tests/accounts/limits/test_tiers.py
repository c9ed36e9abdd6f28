"""Asking for another tier: by the customer, and as staff decide it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from allauth.account.models import EmailAddress
from django.core import mail
from django.db import IntegrityError, transaction
from django.test import Client
from django.urls import reverse

from accounts.limits.tiers import (
    MOST_A_DAY,
    TierRequestRefused,
    accept_request,
    ask_for_tier,
    decline_request,
    withdraw_request,
)
from accounts.models import Account, Tier, TierRequest
from core.events.kinds import EventKind
from tests.accounts.back_office.office import Office, address, logged, published
from tests.accounts.browser import logged_in
from tests.factories import make_account, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.services]
PAGE = "/settings/tier"


@pytest.fixture
def ada() -> Account:
    return make_account(make_user("ada"))


@pytest.fixture
def client(ada: Account) -> Client:
    return logged_in(ada.user)


def tier(name: str) -> Tier:
    return Tier.objects.get(name=name)


def ask(account: Account, name: str = "pro") -> TierRequest:
    return ask_for_tier(account, tier(name), "A bot for gold.", by="ada")


def form(name: str = "pro") -> dict[str, str]:
    return {"wanted": str(tier(name).pk), "why": "A bot for gold."}


@pytest.mark.parametrize(
    "write",
    [
        lambda request: TierRequest.objects.create(account=request.account, wanted=tier("pro"), why="Again."),
        lambda request: decline_request(request, "", by="boss"),
    ],
    ids=["two open ones of an account", "declined without words"],
)
def test_the_database_refuses(ada: Account, write: Callable[[TierRequest], object]) -> None:
    request = ask(ada)
    with pytest.raises(IntegrityError), transaction.atomic():
        write(request)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"wanted": "", "why": "A bot."}, "Choose a tier."),
        ({"wanted": "0", "why": "A bot."}, "Select a valid choice."),
        ({"why": "  "}, "Give the reason in one sentence."),
        ({"why": "A\nbot"}, "one line of printable characters"),
        ({"why": "x" * 501}, "at most 500 characters"),
    ],
)
def test_what_is_wrong_with_a_request_is_said(client: Client, fields: dict[str, str], words: str) -> None:
    answer = client.post(PAGE, form() | fields)
    assert (answer.status_code, words in answer.text) == (400, True)


def test_nobody_asks_for_the_tier_they_have_or_endlessly(ada: Account) -> None:
    with pytest.raises(TierRequestRefused, match="on the Free tier already"):
        ask(ada, "free")
    for _ in range(MOST_A_DAY):
        withdraw_request(ask(ada), by="ada")
    with pytest.raises(TierRequestRefused, match="tomorrow"):
        ask(ada)


def test_a_request_is_sent_once_and_withdrawn_once_and_by_nobody_else(client: Client, ada: Account) -> None:
    page = client.post(PAGE, form(), follow=True).text
    assert "You asked for Pro" in page
    assert "Send the request" not in page
    assert published() == [(EventKind.TIER_ASKED, "ada")]
    assert client.post(PAGE, form("premium")).status_code == 409
    requests = TierRequest.objects.get(), ask(make_account())
    own, other = (reverse("withdraw_tier_request", args=[each.pk]) for each in requests)
    assert client.post(other).status_code == 404
    assert "Your request has been withdrawn." in client.post(own, follow=True).text
    assert "It has already been decided" in client.post(own, follow=True).text
    assert [request.state for request in TierRequest.objects.order_by("pk")] == ["withdrawn", "open"]
    assert "Withdrawn, <time" in client.get(PAGE).text


def test_accepting_changes_the_tier_and_tells_who_did_it(
    client: Client, office: Office, ada: Account
) -> None:
    request = ask(ada)
    office.post(address(request, "accept", request.pk), answered="1")
    ada.refresh_from_db()
    assert ada.tier.name == "pro"
    assert published() == [(EventKind.TIER_ASKED, "ada"), (EventKind.ACCOUNT_CHANGED, "boss")]
    assert logged(request) == [("boss", "Accepted: Pro.")]
    assert logged(ada) == [("boss", "Tier Pro, as asked for.")]
    page, happened = client.get(PAGE).text, client.get("/settings/events").text
    assert "Accepted by staff" in page
    assert "The tier changed to Pro." in happened
    assert "boss" not in page + happened


def test_declining_needs_a_reason_that_the_customer_reads(
    client: Client, office: Office, ada: Account
) -> None:
    request = ask(ada)
    decline_it = address(request, "decline", request.pk)
    assert office.post(decline_it, answered="1", answer="").status_code == 200
    office.post(decline_it, answered="1", answer="Tell us more.")
    assert Account.objects.get(pk=ada.pk).tier.name == "free"
    assert published()[1:] == [(EventKind.TIER_DECLINED, "boss")]
    assert logged(request) == [("boss", "Declined.")]
    page, happened = client.get(PAGE).text, client.get("/settings/events").text
    assert page.index("Tell us more.") < page.index("Send the request")
    assert "was declined: Tell us more." in happened
    assert "boss" not in page + happened


@pytest.mark.parametrize(
    ("act", "subject", "words"),
    [
        ("accept", "You are now on the Pro tier of Tickwire", "What it allows:\nhttp"),
        ("decline", "Your request for another tier of Tickwire was declined", "Tell us “more”."),
    ],
)
@pytest.mark.parametrize("is_confirmed", [True, False])
def test_a_mail_tells_the_decision_to_a_confirmed_address(
    client: Client, office: Office, ada: Account, act: str, subject: str, words: str, is_confirmed: bool
) -> None:
    EmailAddress.objects.create(user=ada.user, email="ada@example.com", primary=True, verified=is_confirmed)
    assert ("answer here and by email to ada@example.com." in client.get(PAGE).text) is is_confirmed
    request = ask(ada)
    for _ in range(2):
        office.post(address(request, act, request.pk), answered="1", answer="Tell us “more”.")
    sent = [(each.to, each.subject, words in each.body) for each in mail.outbox]
    assert sent == [(["ada@example.com"], subject, True)] * is_confirmed


def test_a_request_is_decided_once_and_by_those_who_may(office: Office, ada: Account) -> None:
    request, reader = ask(ada), Office(make_user(is_staff=True))
    for name in ("accept", "decline"):
        assert "A bot for gold." in office.get(address(request, name, request.pk)).text
        assert reader.post(address(request, name, request.pk), answered="1").status_code == 403
    assert TierRequest.objects.get().state == "open"
    accept_request(TierRequest.objects.get(), by="other")
    office.post(address(request, "decline", request.pk), answered="1", answer="No.")
    assert TierRequest.objects.get().decided_by == "other"
    assert logged(request) == []
