"""In production, keys that a proxy says came without TLS are refused, and every answer asks for TLS."""

from __future__ import annotations

from typing import Any

import pytest
from pytest_django.fixtures import Settings

from tests.client import Api
from tests.contract.answers import refusal

PLAIN = {"X-Forwarded-Proto": "http"}


@pytest.fixture(autouse=True)
def _production(settings: Settings) -> None:
    settings.PRODUCTION = True


@pytest.mark.parametrize("said", ["http", "HTTP", "http, https", "ws"])
def test_key_over_plain_http_is_refused(shared: Api, said: str) -> None:
    answer = shared.ask("/api/symbols", headers={"X-Forwarded-Proto": said})
    refusal(answer, 403, "https_required")
    assert "X-RateLimit-Limit" not in answer.headers


def test_wrong_key_is_not_even_looked_at(shared: Api) -> None:
    refusal(shared.ask("/api/symbols", key="wrong", headers=PLAIN), 403, "https_required")


def test_who_sends_no_key_hears_that_it_is_missing(shared: Api) -> None:
    refusal(shared.ask("/api/symbols", key=None, headers=PLAIN), 401, "missing_api_key")


@pytest.mark.parametrize("said", [None, "https", "https, http"])
def test_key_over_tls_or_without_word_of_a_proxy_is_served(shared: Api, said: str | None) -> None:
    headers = {"X-Forwarded-Proto": said} if said else {}
    assert shared.ask("/api/symbols", headers=headers).status_code == 200


@pytest.mark.parametrize("changes", [{"PRODUCTION": False}, {"ALLOW_PLAIN_HTTP": True}], ids=str)
def test_plain_http_may_be_allowed(shared: Api, settings: Settings, changes: dict[str, Any]) -> None:
    for name, value in changes.items():
        setattr(settings, name, value)
    assert shared.ask("/api/symbols", headers=PLAIN).status_code == 200


def test_ingest_keys_too(shared: Api) -> None:
    headers = PLAIN | {"Authorization": "Bearer tw_ingest_x"}
    answer = shared.request("POST", "/ingest/ticks", headers=headers, json={})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "https_required")
