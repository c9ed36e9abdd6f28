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
    *("/", "/settings/keys/1/roll", "/accounts/reauthenticate/", "/accounts/logout/"),
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
# Those of the panel, with what marks them in its side navigation.
PAGES = {
    "/settings/keys": "API keys",
    "/settings/streams": "Open streams",
    "/settings/usage": "Usage",
    "/settings/tier": "Tier",
    "/settings/signals": "Signals",
    "/accounts/password/change/": "Password",
    "/accounts/2fa/": "Two-factor login",
    "/accounts/2fa/totp/activate/": "Two-factor login",
    "/accounts/sessions/": "Sessions",
    "/settings/events": "Events",
    "/accounts/email/": "Email",
}


def assert_is_ours(page: str) -> None:
    assert '<link rel="stylesheet" href="/static/tickwire.css">' in page
    assert len(re.findall(r"<h1[ >]", page)) == 1
    assert not re.search(r"<script(?![^>]*\bsrc=)(?![^>]*application/json)", page)
    assert not re.search(r"\sstyle=|<style|\son\w+=|javascript:", page)
    # A link may lead elsewhere; nothing is fetched from there.
    assert not re.search(r"""<(?!a )[^>]*(src|href|action)=["'](https?:)?//""", page)


@pytest.mark.django_db
def test_pages_before_and_behind_the_login_are_ours_and_those_of_the_panel_mark_themselves() -> None:
    client = Client()
    for path in OPEN:
        assert_is_ours(client.get(f"/accounts/{path}" if path else "/", follow=True).text)
    client.force_login(make_user(password="a long walk 7"))
    for path in OWN:
        assert_is_ours(client.get(path, follow=True).text)
    # As after a login a moment ago: some pages ask for the password otherwise.
    client.post("/accounts/reauthenticate/", {"password": "a long walk 7"})
    assert client.get("/settings")["Location"] == client.get("/settings/")["Location"] == "/settings/keys"
    for path, title in PAGES.items():
        text = client.get(path, follow=True).text
        assert_is_ours(text)
        navigation = text.partition('id="sections"')[2].partition("</nav>")[0]
        assert re.findall(r'aria-current="page">([^<]+)<', navigation) == [title]
        assert set(re.findall(r'<a href="[^"]+"[^>]*>([^<]+)<', navigation)) == {*PAGES.values(), "Your data"}
        assert f"<span>{title}</span>" in text.partition('id="sections"')[0]


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
