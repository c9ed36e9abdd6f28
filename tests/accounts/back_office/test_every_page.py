"""Every registered page opens, and for nobody else."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib import admin
from django.db.models import Model
from django.test import Client, RequestFactory
from django.urls import NoReverseMatch, reverse

import config.urls  # noqa: F401 - it registers the pages
from tests.factories import make_user

from .office import Office, add_to, address, change, list_of
from .rows import one_of_each

pytestmark = pytest.mark.django_db
MODELS = sorted(admin.site._registry, key=lambda model: model._meta.label)
by_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label)


def pages(model: type[Model]) -> list[str]:
    row = one_of_each()[model]
    return [list_of(model), add_to(model), change(row), address(row, "history", row.pk)]


def may_add(office: Office, model: type[Model]) -> bool:
    request: Any = RequestFactory().get("/")
    request.user = office.user
    return admin.site._registry[model].has_add_permission(request)


@by_model
def test_its_pages_open_for_staff(office: Office, model: type[Model]) -> None:
    expected = [200, 200 if may_add(office, model) else 403, 200, 200]
    assert [office.get(page).status_code for page in pages(model)] == expected


@by_model
def test_anonymous_visitors_are_sent_to_the_login(model: type[Model]) -> None:
    for page in pages(model):
        sent_to = Client().get(page, follow=True).redirect_chain[-1][0]
        assert sent_to.startswith("/accounts/login/?next=")


@by_model
def test_a_customer_does_not_get_in(model: type[Model]) -> None:
    client = Client()
    client.force_login(make_user())
    assert {client.get(page, follow=True).status_code for page in pages(model)} == {403}


@by_model
def test_staff_without_permissions_do_not_get_in(model: type[Model]) -> None:
    reader = Office(make_user(is_staff=True))
    assert {reader.get(page).status_code for page in pages(model)} == {403}


def test_the_overview_shows_only_what_the_reader_may_open(office: Office) -> None:
    newcomer = Office(make_user(is_staff=True))
    assert list_of(MODELS[0]) in office.get("/admin/").content.decode()
    assert list_of(MODELS[0]) not in newcomer.get("/admin/").content.decode()


def test_an_address_full_of_slashes_is_compared_in_no_time() -> None:
    """No pattern of the back office goes back at each slash: what it does not know leads to the login."""
    with pytest.raises(NoReverseMatch):
        reverse("admin:view_on_site", args=(1, 1))
    assert Client().get(f"/admin/r/{'/' * 10_000}").status_code == 302
