"""Whoever only looks leaves nothing behind: every URL, by GET and without a login or key."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.factories import make_tiers
from tests.reliability.access.permissions.pages import address_of
from tests.reliability.access.permissions.urls import admin_urls, other_urls

pytestmark = [pytest.mark.django_db, pytest.mark.services]
URLS = [*other_urls(), *admin_urls()]
WRITING = ("INSERT", "UPDATE", "DELETE", "REPLACE")
# The challenge for a passkey has to be kept for its answer; tests/accounts/login/test_sessions.py
# shows how many of them there may be.
KEEPS_A_CHALLENGE = "mfa_login_webauthn"


def written(address: str, accept: str = "text/html") -> list[str]:
    client = Client(raise_request_exception=False, headers={"accept": accept})
    with CaptureQueriesContext(connection) as asked:
        client.get(address)
    return [query["sql"][:80] for query in asked.captured_queries if query["sql"].startswith(WRITING)]


@pytest.fixture(autouse=True)
def _tiers() -> None:
    make_tiers()


@pytest.mark.served
@pytest.mark.parametrize("accept", ["text/html", "application/json"])
def test_no_url_writes_for_somebody_who_only_looks(accept: str) -> None:
    wrote: dict[str, list[str]] = {}
    for url in URLS:
        if found := written(address_of(url.pattern), accept):
            wrote[url.name or url.pattern] = found
    assert len(URLS) > 100
    assert wrote.keys() <= {KEEPS_A_CHALLENGE}, wrote


def test_control_a_login_that_fails_and_the_challenge_of_a_passkey_are_seen_to_write() -> None:
    with CaptureQueriesContext(connection) as asked:
        Client().post("/accounts/login/", {"login": "nobody", "password": "not the right one 1"})
    assert any(query["sql"].startswith(WRITING) for query in asked.captured_queries)
    (url,) = (url for url in URLS if url.name == KEEPS_A_CHALLENGE)
    assert written(address_of(url.pattern), "application/json")
