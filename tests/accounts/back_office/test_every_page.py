"""Every registered page opens, and for nobody else, and says what it has to say."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.db.models import Model
from django.test import Client, RequestFactory
from django.urls import NoReverseMatch, reverse

import config.urls  # noqa: F401 - it registers the pages
from accounts.ending.deletion import delete_account
from accounts.models import Account, TierRequest, User
from signals_feed.models import Signal
from signals_feed.publishers.requests import PublisherRequest
from tests.factories import make_user

from .office import Office, add_to, address, change, list_of, text_of
from .rows import Rows

pytestmark = pytest.mark.django_db
MODELS = sorted(admin.site._registry, key=lambda model: model._meta.label)
SAVE = 'name="_save"'
ODD = re.compile(
    r"to change \||[Pp]er day|Is demo|Pnl|Designates|\b\d\d:\d\d:\d\d(?! UTC|\.|\")|\d{4}-\d\d-\d\d \d\d:\d\d"
)
by_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label)


def pages(row: Model) -> list[str]:
    model = type(row)
    return [list_of(model), add_to(model), change(row), address(row, "history", row.pk)]


@pytest.fixture
def all_pages(rows: Rows) -> list[str]:
    return [page for model in MODELS for page in pages(rows[model])]


def may_add(office: Office, model: type[Model]) -> bool:
    request: Any = RequestFactory().get("/")
    request.user = office.user
    return admin.site._registry[model].has_add_permission(request)


@by_model
def test_its_pages_open_for_staff(rows: Rows, office: Office, model: type[Model]) -> None:
    answers = [office.get(page) for page in pages(rows[model])]
    assert [each.status_code for each in answers] == [200, 200 if may_add(office, model) else 403, 200, 200]
    for page in (answers[0], answers[2]):
        assert ODD.findall(re.sub(r"<(script|input)\b.*?>", "", text_of(page))) == []


def test_anonymous_visitors_are_sent_to_the_login(all_pages: list[str]) -> None:
    for page in all_pages:
        sent_to = Client().get(page, follow=True).redirect_chain[-1][0]
        assert sent_to.startswith("/accounts/login/?next=")


def test_a_customer_does_not_get_in(all_pages: list[str]) -> None:
    client = Client()
    client.force_login(make_user())
    assert {client.get(page, follow=True).status_code for page in all_pages} == {403}


def test_staff_without_permissions_do_not_get_in(all_pages: list[str]) -> None:
    reader = Office(make_user(is_staff=True))
    assert {reader.get(page).status_code for page in all_pages} == {403}


def test_the_overview_shows_only_what_the_reader_may_open(office: Office) -> None:
    newcomer = Office(make_user(is_staff=True))
    assert list_of(MODELS[0]) in office.get("/admin/").content.decode()
    assert list_of(MODELS[0]) not in newcomer.get("/admin/").content.decode()


def test_an_address_full_of_slashes_is_compared_in_no_time() -> None:
    """No pattern of the back office goes back at each slash: what it does not know leads to the login."""
    with pytest.raises(NoReverseMatch):
        reverse("admin:view_on_site", args=(1, 1))
    assert Client().get(f"/admin/r/{'/' * 10_000}").status_code == 302


@pytest.mark.parametrize("model", [TierRequest, PublisherRequest])
def test_a_request_is_decided_and_not_saved(rows: Rows, office: Office, model: type[Model]) -> None:
    text = text_of(office.get(change(rows[model])))
    assert SAVE not in text
    assert "Accept" in text


def test_what_can_be_edited_can_be_saved(rows: Rows, office: Office) -> None:
    assert SAVE in text_of(office.get(change(rows[Account])))


def test_a_signal_is_called_by_its_symbol(rows: Rows, office: Office) -> None:
    signal = rows[Signal]
    assert re.match(r"Buy EURUSD at 1\.\d{5}$", str(signal))
    assert str(signal) in text_of(office.get(change(signal)))


def test_only_a_cancelled_signal_has_a_reason_for_it(rows: Rows, office: Office) -> None:
    signal = rows[Signal]
    assert "Cancel reason" not in text_of(office.get(change(signal)))
    Signal.objects.update(cancel_reason="wrong symbol")
    assert "Cancel reason" in text_of(office.get(change(signal)))


@pytest.mark.parametrize("page", ["accept", "decline"])
@pytest.mark.parametrize("model", [TierRequest, PublisherRequest])
def test_a_decided_request_says_who_decided_and_offers_no_button(
    rows: Rows, office: Office, model: type[Model], page: str
) -> None:
    row = rows[model]
    assert 'type="submit"' in (open_page := text_of(office.get(address(row, page, row.pk))))
    assert "cannot be decided again" not in open_page
    office.post(address(row, "accept", row.pk), answered="1")
    seen = text_of(office.get(address(row, page, row.pk)))
    assert "It was accepted by boss on " in seen
    assert " UTC. It cannot be decided again." in seen
    assert 'name="answer"' not in seen
    assert ">Accept</" not in seen.replace("\n", "").replace(" ", "")
    assert ">Decline</" not in seen.replace("\n", "").replace(" ", "")


def test_a_request_is_called_by_the_name_of_who_asked(rows: Rows, office: Office) -> None:
    request = rows[PublisherRequest]
    assert isinstance(request, PublisherRequest)
    assert str(request) == f"Request of {request.account} to publish signals"


def test_the_log_forgets_that_name_with_the_account(rows: Rows, office: Office) -> None:
    request = rows[PublisherRequest]
    assert isinstance(request, PublisherRequest)
    name = request.account.user.username
    office.post(address(request, "accept", request.pk), answered="1")
    assert name in LogEntry.objects.latest("pk").object_repr
    delete_account(User.objects.get(username=name))
    assert name not in LogEntry.objects.latest("pk").object_repr
