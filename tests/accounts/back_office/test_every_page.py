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
from accounts.deletion import delete_account
from accounts.models import Account, ApiKey, Tier, TierRequest, User
from signals_feed.models import Signal
from signals_feed.publishers.requests import PublisherRequest
from tests.factories import make_user

from .office import Office, add_to, address, change, list_of, text_of
from .rows import Rows

pytestmark = pytest.mark.django_db
MODELS = sorted(admin.site._registry, key=lambda model: model._meta.label)
ODD = re.compile(
    r"to change \||[Pp]er day|Is demo|Pnl|Designates|\b\d\d:\d\d:\d\d(?! UTC|\.|\")|\d{4}-\d\d-\d\d \d\d:\d\d"
)
by_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label)


def pages(row: Model) -> list[str]:
    model = type(row)
    return [list_of(model), add_to(model), change(row), address(row, "history", row.pk)]


def may_add(office: Office, model: type[Model]) -> bool:
    request: Any = RequestFactory().get("/")
    request.user = office.user
    return admin.site._registry[model].has_add_permission(request)


@pytest.mark.served
@by_model
def test_its_pages_open_for_staff(rows: Rows, office: Office, model: type[Model]) -> None:
    answers = [office.get(page) for page in pages(rows[model])]
    assert [each.status_code for each in answers] == [200, 200 if may_add(office, model) else 403, 200, 200]
    for page in (answers[0], answers[2]):
        assert ODD.findall(re.sub(r"<(script|input)\b.*?>", "", text_of(page))) == []


def test_a_customer_does_not_get_in(rows: Rows) -> None:
    client = Client()
    client.force_login(make_user())
    every = [page for model in MODELS for page in pages(rows[model])]
    assert {client.get(page, follow=True).status_code for page in every} == {403}


def test_the_overview_shows_only_what_the_reader_may_open(office: Office) -> None:
    newcomer = Office(make_user(is_staff=True))
    assert list_of(MODELS[0]) in office.get("/admin/").content.decode()
    assert list_of(MODELS[0]) not in newcomer.get("/admin/").content.decode()


def test_an_address_full_of_slashes_is_compared_in_no_time() -> None:
    """No pattern of the back office goes back at each slash: what it does not know leads to the login."""
    with pytest.raises(NoReverseMatch):
        reverse("admin:view_on_site", args=(1, 1))
    assert Client().get(f"/admin/r/{'/' * 10_000}").status_code == 302


def test_a_signal_is_called_by_its_symbol_and_has_a_reason_once_it_is_cancelled(
    rows: Rows, office: Office
) -> None:
    signal = rows[Signal]
    assert re.match(r"Buy EURUSD at 1\.\d{5}$", str(signal))
    before = text_of(office.get(change(signal)))
    assert (str(signal) in before, "Cancel reason" in before) == (True, False)
    Signal.objects.update(cancel_reason="wrong symbol")
    assert "Cancel reason" in text_of(office.get(change(signal)))


@pytest.mark.parametrize("model", [User, Account, Tier, ApiKey])
def test_what_happened_to_a_customer_cannot_be_deleted(
    rows: Rows, office: Office, model: type[Model]
) -> None:
    row = rows[model]
    assert office.post(address(row, "delete", row.pk), post="yes").status_code == 403


@pytest.mark.parametrize("page", ["accept", "decline"])
@pytest.mark.parametrize("model", [TierRequest, PublisherRequest])
def test_a_request_is_decided_and_not_saved_and_a_decided_one_offers_no_button(
    rows: Rows, office: Office, model: type[Model], page: str
) -> None:
    row = rows[model]
    text = text_of(office.get(change(row)))
    assert ('name="_save"' in text, "Accept" in text) == (False, True)
    assert 'type="submit"' in text_of(office.get(address(row, page, row.pk)))
    office.post(address(row, "accept", row.pk), answered="1")
    seen = text_of(office.get(address(row, page, row.pk)))
    assert "It was accepted by boss on " in seen
    assert 'name="answer"' not in seen
    assert not re.search(r">\s*(Accept|Decline)\s*</", seen)


def test_the_log_forgets_the_name_of_who_asked_with_the_account(rows: Rows, office: Office) -> None:
    request = rows[PublisherRequest]
    assert isinstance(request, PublisherRequest)
    name = request.account.user.username
    office.post(address(request, "accept", request.pk), answered="1")
    assert name in LogEntry.objects.latest("pk").object_repr
    delete_account(User.objects.get(username=name))
    assert name not in LogEntry.objects.latest("pk").object_repr
