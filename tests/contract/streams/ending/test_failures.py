"""60 failures a minute from one address: sockets and requests count together, valid keys never."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import httpx
import pytest

from accounts.key_text import generate_key
from tests.client import Server
from tests.contract.streams.client import Frame
from tests.contract.streams.conftest import Open
from tests.patience import PATIENCE_S

ALLOWED = 60
_addresses = itertools.count(2)


@pytest.fixture
def address() -> str:
    """One that nobody has called from."""
    return f"127.0.3.{next(_addresses)}"


@pytest.fixture
def client(service: Server, address: str) -> Iterator[httpx.Client]:
    transport = httpx.HTTPTransport(local_address=address)
    with httpx.Client(base_url=service.url, transport=transport, timeout=PATIENCE_S) as made:
        yield made


def use_up(client: httpx.Client) -> None:
    for _ in range(ALLOWED):
        assert client.get("/api/symbols").status_code == 401


def refused(opened: Open, address: str, symbol: str = "EURUSD", **key: str) -> Frame:
    socket = opened(address=address)
    refusal = socket.refused({"action": "subscribe", "symbols": [symbol], **key})
    assert (socket.closed, refusal["fatal"], refusal["retry"]) == (4401, True, False)
    error: Frame = refusal["error"]
    assert (error["code"], error["status"]) == ("invalid_api_key", 401)
    return error


def test_socket_without_a_valid_key_is_told_to_wait_after_60_failed_requests(
    opened: Open, client: httpx.Client, address: str
) -> None:
    use_up(client)
    for key in ({"api_key": generate_key()}, {"api_key": "nonsense"}, {}):
        error = refused(opened, address, **key)
        assert 1 <= error["retry_after"] <= 60
        assert "Too many attempts" in error["message"]


def test_60_failed_sockets_use_up_the_failures_of_requests(
    opened: Open, client: httpx.Client, address: str
) -> None:
    for _ in range(ALLOWED):
        assert "retry_after" not in refused(opened, address, api_key="nonsense")
    answer = client.get("/api/symbols")
    assert (answer.status_code, answer.json()["error"]["code"]) == (429, "rate_limit_exceeded")


def test_valid_key_from_there_is_not_affected(
    opened: Open, client: httpx.Client, address: str, key: str, symbol: str
) -> None:
    use_up(client)
    assert "retry_after" in refused(opened, address)
    socket = opened(address=address)
    assert socket.subscribe(symbol, api_key=key)["type"] == "subscribed"


def test_other_addresses_are_not_affected(opened: Open, client: httpx.Client) -> None:
    use_up(client)
    assert "retry_after" not in refused(opened, f"127.0.3.{next(_addresses)}", api_key="nonsense")
