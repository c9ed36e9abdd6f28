"""Every page a person can reach is one of ours, under the strict content policy."""

import logging
import re

import pytest
from django.core.exceptions import PermissionDenied
from django.core.handlers.asgi import ASGIHandler
from django.test import Client, RequestFactory
from django.utils.functional import SimpleLazyObject
from django.views.defaults import permission_denied

from core.contract.errors import server_error
from tests.factories import make_user

OPEN = [
    "/",
    "/accounts/login/",
    "/accounts/signup/",
    "/accounts/logout/",
    "/accounts/inactive/",
    "/accounts/confirm-email/",
    "/accounts/confirm-email/none/",
    "/accounts/password/reset/",
    "/accounts/password/reset/done/",
    "/accounts/password/reset/key/1-none/",
    "/accounts/password/reset/key/done/",
]
OWN = [
    "/",
    "/settings/keys",
    "/settings/tier",
    "/settings/usage",
    "/settings/streams",
    "/settings/events",
    "/accounts/sessions/",
    "/settings/keys/1/roll",
    "/accounts/email/",
    "/accounts/password/change/",
    "/accounts/reauthenticate/",
    "/accounts/2fa/",
    "/accounts/2fa/totp/activate/",
    "/accounts/2fa/webauthn/",
    "/accounts/2fa/webauthn/add/",
    "/accounts/2fa/recovery-codes/generate/",
    "/accounts/logout/",
]
POLICY = {
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
}
BROWSER = {"accept": "text/html"}


def assert_is_ours(page: str) -> None:
    assert '<link rel="stylesheet" href="/static/tickwire.css">' in page
    assert len(re.findall(r"<h1[ >]", page)) == 1
    assert not re.search(r"<script(?![^>]*\bsrc=)(?![^>]*application/json)", page)
    assert not re.search(r"\sstyle=|<style|\son\w+=|javascript:", page)
    # A link may lead elsewhere; nothing is fetched from there.
    assert not re.search(r"""<(?!a )[^>]*(src|href|action)=["'](https?:)?//""", page)


@pytest.mark.django_db
def test_pages_behind_the_login_ask_for_it() -> None:
    for path in ("keys", "tier", "usage", "streams", "events", "signals", "account"):
        location = Client().get(f"/settings/{path}")["Location"]
        assert location == f"/accounts/login/?next=/settings/{path}"


@pytest.mark.django_db
def test_pages_before_and_behind_the_login_are_ours() -> None:
    client = Client()
    for path in OPEN:
        assert_is_ours(client.get(path, follow=True).text)
    client.force_login(make_user(password="a long walk 7"))
    for path in OWN:
        assert_is_ours(client.get(path, follow=True).text)


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/", "/settings/keys/1/roll", "/accounts/login/", "/nothing-here"])
def test_page_carries_the_strict_policy(path: str) -> None:
    assert set(Client().get(path, headers=BROWSER)["Content-Security-Policy"].split("; ")) == POLICY


@pytest.mark.django_db
def test_start_page_leads_in_and_to_the_docs() -> None:
    page = Client().get("/").text
    assert [f'href="{link}"' in page for link in ("/accounts/login/", "/accounts/signup/", "/docs")] == [
        True
    ] * 3


@pytest.mark.django_db
def test_start_page_leads_those_who_are_in_to_their_keys() -> None:
    client = Client()
    client.force_login(make_user())
    page = client.get("/").text
    assert 'href="/settings/keys"' in page
    assert "/accounts/login/" not in page


def test_start_page_takes_no_post() -> None:
    assert Client().post("/").status_code == 405


@pytest.mark.django_db
def test_missing_page_is_ours() -> None:
    answer = Client().get("/nothing-here", headers=BROWSER)
    assert answer.status_code == 404
    assert_is_ours(answer.text)


def test_failure_page_is_ours_and_asks_the_database_nothing(rf: RequestFactory) -> None:
    request = rf.get("/", headers=BROWSER)
    request.user = SimpleLazyObject(ask_the_database)  # type: ignore[assignment]
    answer = server_error(request)
    assert answer.status_code == 500
    assert_is_ours(answer.text)


def ask_the_database() -> None:
    raise AssertionError("the failure page asked who is there")


@pytest.mark.django_db
def test_refusal_page_is_ours(rf: RequestFactory) -> None:
    answer = permission_denied(rf.get("/"), PermissionDenied())
    assert answer.status_code == 403
    assert_is_ours(answer.text)


def test_forged_form_page_is_ours() -> None:
    answer = Client(enforce_csrf_checks=True).post("/accounts/login/")
    assert answer.status_code == 403
    assert "The form was too old" in answer.text
    assert_is_ours(answer.text)


def test_unknown_host_page_is_ours() -> None:
    answer = Client().get("/", headers={"host": "elsewhere.example", "accept": "text/html"})
    assert answer.status_code == 400
    assert "ALLOWED_HOSTS" in answer.text
    assert_is_ours(answer.text)


@pytest.mark.django_db
def test_too_many_attempts_page_is_ours() -> None:
    client = Client()
    for _ in range(31):
        answer = client.post("/accounts/login/")
    assert answer.status_code == 429
    assert_is_ours(answer.text)


def test_no_middleware_makes_a_thread_hop(caplog: pytest.LogCaptureFixture) -> None:
    """Django says so at debug level where it has to adapt one."""
    with caplog.at_level(logging.DEBUG, logger="django.request"):
        ASGIHandler()
    assert not caplog.messages
