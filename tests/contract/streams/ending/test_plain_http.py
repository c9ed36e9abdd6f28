"""In production, a key on a socket that a proxy says came without TLS is refused."""

from __future__ import annotations

from typing import Any

import pytest
from pytest_django.fixtures import Settings

from tests.contract.streams.conftest import Open


@pytest.fixture(autouse=True)
def _production(settings: Settings) -> None:
    settings.PRODUCTION = True


def refused(opened: Open, **headers: Any) -> tuple[str, int | None]:
    socket = opened(X_Forwarded_Proto="http", **headers)
    said = socket.refused({"action": "subscribe", "symbols": ["EURUSD"], "api_key": "tw_live_x"})
    return said["error"]["code"], socket.closed


def test_key_in_the_message_is_refused(opened: Open) -> None:
    assert refused(opened) == ("https_required", 4403)


def test_socket_over_tls_is_served(opened: Open, key: str, symbol: str) -> None:
    assert opened(key=key, X_Forwarded_Proto="https").subscribe(symbol)["type"] == "subscribed"


def test_plain_socket_may_be_allowed(opened: Open, key: str, symbol: str, settings: Settings) -> None:
    settings.ALLOW_PLAIN_HTTP = True
    assert opened(key=key, X_Forwarded_Proto="http").subscribe(symbol)["type"] == "subscribed"
