"""Every page a person can reach is one of ours, under the strict content policy."""

import logging
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.core.handlers.asgi import ASGIHandler
from django.test import Client, RequestFactory
from django.utils.functional import SimpleLazyObject
from django.views.defaults import permission_denied

from core.contract.errors import server_error
from tests.factories import make_user

OPEN = (
    *("", "login/", "signup/", "logout/", "inactive/", "confirm-email/", "confirm-email/none/"),
    *("password/reset/", "password/reset/done/", "password/reset/key/1-none/", "password/reset/key/done/"),
)
OWN = (
    *("/", "/settings/keys", "/settings/tier", "/settings/usage", "/settings/streams", "/settings/events"),
    *("/accounts/sessions/", "/settings/keys/1/roll", "/accounts/email/", "/accounts/password/change/"),
    *("/accounts/reauthenticate/", "/accounts/2fa/", "/accounts/2fa/totp/activate/", "/accounts/logout/"),
    *("/accounts/2fa/webauthn/", "/accounts/2fa/webauthn/add/", "/accounts/2fa/recovery-codes/generate/"),
)
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
def test_pages_before_and_behind_the_login_are_ours() -> None:
    client = Client()
    for path in OPEN:
        assert_is_ours(client.get(f"/accounts/{path}" if path else "/", follow=True).text)
    client.force_login(make_user(password="a long walk 7"))
    for path in OWN:
        assert_is_ours(client.get(path, follow=True).text)


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/", "/settings/keys/1/roll", "/accounts/login/", "/nothing-here"])
def test_page_carries_the_strict_policy(path: str) -> None:
    assert set(Client().get(path, headers=BROWSER)["Content-Security-Policy"].split("; ")) == POLICY


def too_often() -> Any:
    client = Client()
    for _ in range(31):
        answer = client.post("/accounts/login/")
    return answer


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("ask", "status", "words"),
    [
        (lambda: Client().get("/nothing-here", headers=BROWSER), 404, ""),
        (lambda: permission_denied(RequestFactory().get("/"), PermissionDenied()), 403, ""),
        (lambda: Client(enforce_csrf_checks=True).post("/accounts/login/"), 403, "The form was too old"),
        (lambda: Client().get("/", headers=BROWSER | {"host": "elsewhere.example"}), 400, "ALLOWED_HOSTS"),
        (too_often, 429, ""),
    ],
    ids=["missing", "refused", "forged form", "unknown host", "too many attempts"],
)
def test_page_of_a_refusal_is_ours(ask: Callable[[], Any], status: int, words: str) -> None:
    answer = ask()
    assert answer.status_code == status
    assert words in answer.text
    assert_is_ours(answer.text)


def test_failure_page_is_ours_and_asks_the_database_nothing(rf: RequestFactory) -> None:
    def ask_the_database() -> None:
        raise AssertionError("the failure page asked who is there")

    request = rf.get("/", headers=BROWSER)
    request.user = SimpleLazyObject(ask_the_database)  # type: ignore[assignment]
    answer = server_error(request)
    assert answer.status_code == 500
    assert_is_ours(answer.text)


def test_no_middleware_makes_a_thread_hop(caplog: pytest.LogCaptureFixture) -> None:
    """Django says so at debug level where it has to adapt one."""
    with caplog.at_level(logging.DEBUG, logger="django.request"):
        ASGIHandler()
    assert not caplog.messages
