"""Nobody acts on an account that may do more than they may: every page of the back office, by every role."""

from __future__ import annotations

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.contrib import admin
from django.contrib.auth.models import Group
from django.db.models import Model

import config.urls  # noqa: F401 - it registers the pages
from accounts.back_office.staff_pages import StaffAdmin
from accounts.models import Account, ApiKey, TierRequest, User
from signals_feed.publishers.requests import PublisherRequest
from tests.reliability.access.permissions.cells import pages_of
from tests.reliability.access.permissions.matrix import Matrix, powers_on
from tests.reliability.access.permissions.people import Role
from tests.reliability.access.permissions.urls import admin_urls
from tests.reliability.fixtures import Tell

MODELS = sorted(admin.site._registry, key=lambda model: model._meta.label)
pytestmark = [pytest.mark.django_db, pytest.mark.row("30", "no forbidden access succeeds")]

# What a superuser does to somebody on each page: were it not done, the matrix would try nothing.
ACTS: dict[type[Model], set[str]] = {
    User: {"add", "change", "password"},
    Account: {"add", "change"},
    ApiKey: {"add", "change", "roll", "revoke", "revoke_chosen"},
    EmailAddress: {"add", "change", "delete", "delete_selected"},
    Authenticator: {"delete", "delete_selected"},
    TierRequest: {"accept", "decline"},
    PublisherRequest: {"accept", "decline"},
    Group: {"add", "change", "delete", "delete_selected"},
}
# Pages that belong to no model: the test of all other pages has them.
APART = {
    *("index", "login", "logout", "password_change", "password_change_done", "autocomplete", "jsi18n"),
    *("app_list", "search", "market_status", "news_queue", "news_calibration_page"),
    "admin/(?P<url>.*)$",
}


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label)
def test_no_role_reaches_forbidden_pages_of_the_back_office(model: type[Model], tell: Tell) -> None:
    matrix = Matrix(model)
    matrix.try_all()

    tell(f"{len(matrix.holes)} of {matrix.cells} attempts on {model._meta.label}")
    assert matrix.holes == []
    done = {kind for role, kind, target in matrix.acted if (role, target) == ("superuser", "plain")}
    assert done >= ACTS.get(model, set())


@pytest.mark.parametrize(
    "model", [User, Account, ApiKey, EmailAddress, TierRequest], ids=lambda model: model._meta.label
)
def test_control_missing_permission_checks_are_noticed(
    model: type[Model], monkeypatch: pytest.MonkeyPatch, tell: Tell
) -> None:
    """The control: with the permissions of Django alone, as they are without the rule."""
    monkeypatch.setattr(StaffAdmin, "reaches", lambda *_: True)
    monkeypatch.setattr("accounts.back_office.staff_pages.reached", lambda request, rows, owner: rows)
    matrix = Matrix(model, [Role("staff with the permissions of this page", powers_on(model))])
    matrix.try_all()

    seen = {
        target
        for target in ("greater", "superuser")
        if any(f" on {target} " in each for each in matrix.holes)
    }
    tell(f"{len(matrix.holes)} missing checks noticed in {model._meta.label}")
    assert seen == {"greater", "superuser"}


def test_every_url_of_the_back_office_is_covered(tell: Tell) -> None:
    within = {page.route for model in MODELS for page in pages_of(model)} | APART
    outside = [url.pattern for url in admin_urls() if not {url.name, url.pattern} & within]
    # Old addresses of rows have no name: each leads on to the page of the row.
    nameless = [each for each in outside if each.endswith("<path:object_id>/")]

    tell(f"{len(outside) - len(nameless)} of {len(admin_urls())} URLs not covered")
    assert len(admin_urls()) > 100
    assert len(nameless) == len(MODELS)
    assert sorted(set(outside) - set(nameless)) == []


def test_every_page_of_the_back_office_uses_the_base_that_checks_permissions() -> None:
    assert [model for model, page in admin.site._registry.items() if not isinstance(page, StaffAdmin)] == []


def test_a_page_that_does_not_declare_the_owner_of_its_rows_is_an_error() -> None:
    class Careless(StaffAdmin[EmailAddress]):
        pass

    assert [each.id for each in Careless(EmailAddress, admin.site).check()] == ["accounts.E001"]
