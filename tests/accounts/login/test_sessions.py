"""Nothing is written for strangers before the limit is asked, and what is does not stay."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.core.cache import cache
from django.utils import timezone
from pytest_django.fixtures import Settings

from accounts.login import sessions
from accounts.login.sessions import NEW_A_MINUTE, STRANGERS_AGE_S
from tests.accounts.browser import ask, browser
from tests.factories import make_tiers, make_user

pytestmark = pytest.mark.django_db

# Writes a passkey's challenge into the session of whoever asks.
CHALLENGE = "/accounts/2fa/webauthn/login/"
ASYNC = {"Accept": "application/json"}
PASSWORD = "a long walk 7"


def challenge(address: str = "203.0.113.9") -> int:
    """Of a browser that has no session yet; allauth's own limit, ten a minute, is out of the way."""
    cache.clear()
    return browser(address).get(CHALLENGE, headers=ASYNC).status_code


def test_strangers_open_no_more_sessions_than_the_limit_allows_and_for_an_hour() -> None:
    statuses = [challenge(f"2001:db8::{number:x}") for number in range(NEW_A_MINUTE + 5)]
    assert statuses == [200] * NEW_A_MINUTE + [429] * 5
    assert Session.objects.count() == NEW_A_MINUTE
    left = Session.objects.latest("expire_date").expire_date - timezone.now()
    assert left <= timedelta(seconds=STRANGERS_AGE_S)
    # The limit is of a network, and others do not feel it.
    assert challenge("203.0.113.9") == 200


def test_who_logs_in_is_not_a_stranger() -> None:
    make_user("ada", PASSWORD)
    for _ in range(NEW_A_MINUTE + 1):
        challenge()
    client = browser("203.0.113.9")
    assert client.post("/accounts/login/", {"login": "ada", "password": PASSWORD}).status_code == 302
    assert client.get("/settings/keys").status_code == 200


def test_refused_visitor_leaves_no_session_behind(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.PUBLIC_TERMINAL = True
    make_tiers()
    monkeypatch.setattr(sessions, "MOST_AN_HOUR", 2)
    statuses = [ask(browser()).status_code for _ in range(5)]
    assert statuses == [200, 200, 429, 429, 429]
    assert Session.objects.count() == 2
