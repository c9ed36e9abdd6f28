"""What the address of a caller decides: how often it may fail, and whether demo keys work."""

from __future__ import annotations

import httpx
import pytest

from tests.client import Api, Server
from tests.contract.answers import refusal
from tests.factories import make_account, make_key
from tests.patience import PATIENCE_S


def at(server: Server, address: str) -> httpx.Client:
    transport = httpx.HTTPTransport(local_address=address)
    return httpx.Client(base_url=server.url, transport=transport, timeout=PATIENCE_S)


def test_sixty_failures_a_minute_are_answered_401_and_then_429(shared_server: Server, shared: Api) -> None:
    with at(shared_server, "127.0.2.1") as client:
        keyless: dict[str, str] = {}
        wrong = {"X-API-Key": "letmein"}
        answers = [client.get("/api/symbols", headers=wrong if odd % 2 else keyless) for odd in range(60)]
        assert [answer.status_code for answer in answers] == [401] * 60

        for headers in (keyless, wrong):
            refused = client.get("/api/symbols", headers=headers)
            message = refusal(refused, 429, "rate_limit_exceeded")
            assert 1 <= int(refused.headers["Retry-After"]) <= 60
            assert message.endswith(f"Try again in {refused.headers['Retry-After']} s.")
            assert "X-RateLimit-Limit" not in refused.headers

        # A valid key from that address is not affected, however often it comes.
        valid = {"X-API-Key": shared.key}
        assert {client.get("/api/symbols", headers=valid).status_code for _ in range(61)} == {200}
        assert client.get("/api/symbols").status_code == 429
        assert client.options("/api/symbols").status_code == 204

    with at(shared_server, "127.0.2.2") as neighbour:
        assert neighbour.get("/api/symbols").status_code == 401


def test_forwarded_address_is_not_believed(shared_server: Server) -> None:
    with at(shared_server, "127.0.2.3") as client:
        headers = ({"X-Forwarded-For": f"192.0.2.{number}"} for number in range(61))
        statuses = [client.get("/api/symbols", headers=each).status_code for each in headers]

    assert statuses == [401] * 60 + [429]


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Forwarded-For": "127.0.0.1"},
        {"Forwarded": "for=127.0.0.1"},
        {"X-Real-IP": "127.0.0.1"},
        {"Via": "1.1 proxy"},
        {"Host": "tickwire.example"},
        {"Host": "127.0.0.1.example"},
    ],
    ids=str,
)
def test_demo_key_opens_nothing_off_loopback(
    shared_server: Server, shared: Api, headers: dict[str, str]
) -> None:
    demo = {"X-API-Key": make_key(make_account(tier="roomy", is_demo=True))}
    with at(shared_server, "127.0.2.4") as client:
        here = client.get("/api/symbols", headers=demo)
        elsewhere = client.get("/api/symbols", headers=demo | headers)

    assert here.status_code == 200
    refusal(elsewhere, 401, "invalid_api_key")


def test_proxied_request_with_an_ordinary_key_is_served(shared: Api) -> None:
    headers = {"X-Forwarded-For": "192.0.2.7", "Via": "1.1 proxy"}

    assert shared.ask("/api/symbols", headers=headers).status_code == 200
