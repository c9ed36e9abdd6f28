"""Keys: which open, what is said of the others, and what the way and the address of a caller decide."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import httpx
import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings
from time_machine import Traveller

from accounts.key_text import derive_key, prefix_of
from accounts.keys.issuing import revoke_key, roll_key
from accounts.limits.tiers import save_user_access
from accounts.models import Account, ApiKey
from tests.client import Api, Server
from tests.contract.answers import PATHS, refusal
from tests.contract.raw import raw_get
from tests.factories import NOON, make_account, make_key, make_user
from tests.patience import PATIENCE_S, wait_until

pytestmark = pytest.mark.services

UNKNOWN = derive_key("nobody's secret", "test")
SYMBOLS = "/api/symbols"
_addresses = itertools.count(2)


@pytest.fixture
def stranger(shared_server: Server, shared: Api) -> Iterator[httpx.Client]:
    """A client from an address of its own, whose failures nobody else is held to."""
    transport = httpx.HTTPTransport(local_address=f"127.0.1.{next(_addresses)}")
    with httpx.Client(base_url=shared_server.url, transport=transport, timeout=PATIENCE_S) as client:
        yield client


def knock(client: httpx.Client, key: str | None, path: str = SYMBOLS) -> httpx.Response:
    return client.get(path, headers={} if key is None else {b"X-API-Key": key.encode("latin-1")})


def roomy_key(**changes: Any) -> str:
    return make_key(make_account(tier="roomy"), **changes)


BAD_KEYS: dict[str, Callable[[], str]] = {
    "unknown": lambda: UNKNOWN,
    "revoked": lambda: roomy_key(revoked_at=NOON),
    "expired": lambda: roomy_key(expires_at=NOON),
    "of an inactive user": lambda: make_key(make_account(make_user(is_active=False), tier="roomy")),
    "malformed": lambda: "letmein",
    "wrong checksum": lambda: UNKNOWN[:-1] + ("0" if UNKNOWN[-1] != "0" else "1"),
    "lower case": lambda: roomy_key().lower(),
    "cut short": lambda: roomy_key()[:-1],
    "too long": lambda: roomy_key() + "A",
    "very long": lambda: "A" * 8000,
    "not ASCII": lambda: "tw_live_é",
    "quoted": lambda: f'"{roomy_key()}"',
}


@pytest.mark.parametrize("path", [*PATHS, "/api/nothing", "/api/market/NOSUCH", "/api/news?limit=0"])
def test_every_path_refuses_a_request_without_a_key(stranger: httpx.Client, path: str) -> None:
    response = knock(stranger, None, path)
    refusal(response, 401, "missing_api_key")
    assert response.headers["WWW-Authenticate"] == "ApiKey"


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "PATCH", "DELETE"])
def test_every_method_but_options_needs_a_key(stranger: httpx.Client, method: str) -> None:
    assert stranger.request(method, SYMBOLS).status_code == 401


@pytest.mark.parametrize("kind", BAD_KEYS)
def test_bad_keys_are_all_answered_alike(stranger: httpx.Client, kind: str) -> None:
    answers = [knock(stranger, key) for key in (UNKNOWN, BAD_KEYS[kind]())]
    for answer in answers:
        refusal(answer, 401, "invalid_api_key")
        assert answer.headers["WWW-Authenticate"] == "ApiKey"
    unknown, other = (answer.text.replace(answer.headers["X-Request-Id"], "") for answer in answers)
    assert unknown == other
    assert [*answers[0].headers] == [*answers[1].headers]


@pytest.mark.parametrize("query", ["api_key", "X-API-Key", "x-api-key", "key", "token"])
def test_key_in_the_url_is_not_read_nor_logged(
    stranger: httpx.Client, shared: Api, caplog: pytest.LogCaptureFixture, query: str
) -> None:
    with caplog.at_level(logging.INFO, "accounts.access"):
        refusal(stranger.get(f"{SYMBOLS}?{query}={shared.key}"), 401, "missing_api_key")
    # The client's own log lines tell the whole URL; ours are meant.
    said = (record for record in caplog.records if record.name == "accounts.access")
    # How many more there were of a flood before may be told at any time.
    (record,) = (record for record in said if not hasattr(record, "count"))
    assert record.getMessage() == "GET /api/symbols 401"
    assert shared.key not in str(record.__dict__)


@pytest.mark.parametrize("header", ["Authorization", "Cookie", "Sec-WebSocket-Protocol"])
def test_key_in_another_header_is_not_read(stranger: httpx.Client, shared: Api, header: str) -> None:
    for value in (shared.key, f"ApiKey {shared.key}", f"X-API-Key={shared.key}", f"Bearer {shared.key}"):
        message = refusal(stranger.get(SYMBOLS, headers={header: value}), 401, "missing_api_key")
        assert ("Authorization header is not read" in message) is (header == "Authorization")
        assert shared.key not in message


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        pytest.param([b"x-api-key: %s"], None, id="lower case"),
        pytest.param([b"X-API-KEY: %s"], None, id="upper case"),
        pytest.param([b"X_API_Key: %s"], "missing_api_key", id="underscores"),
        pytest.param([b"X-API_Key: %s"], "missing_api_key", id="one underscore"),
        pytest.param([b"X-API-Key: %s", b"X-API-Key: %s"], "invalid_api_key", id="twice"),
        pytest.param([b"X-API-Key: %s", b"x-api-key: other"], "invalid_api_key", id="another"),
        pytest.param([b"X-API-Key: %s"] * 50, "invalid_api_key", id="50 times"),
        pytest.param([b"X-API-Key:"], "missing_api_key", id="empty"),
    ],
)
def test_ways_to_name_a_good_key(
    shared_server: Server, shared: Api, lines: list[bytes], code: str | None
) -> None:
    answer = raw_get(
        shared_server, b"/api/symbols", *(line.replace(b"%s", shared.key.encode()) for line in lines)
    )
    assert answer.status == (401 if code else 200)
    assert code is None or answer.code == code


def row_of(key: str) -> ApiKey:
    return ApiKey.objects.get(prefix=prefix_of(key))


def lock_out(key: str) -> None:
    account = row_of(key).account
    account.user.is_active = False
    account.user.save()
    save_user_access(Account.objects.get(pk=account.pk), by="test")


@pytest.mark.parametrize(
    "end",
    [
        lambda key: revoke_key(row_of(key), by="test"),
        lambda key: roll_key(row_of(key), overlap_hours=0, by="test"),
        lock_out,
    ],
    ids=["revoked", "rolled without overlap", "user locked out"],
)
def test_key_ends_while_it_is_in_use(shared: Api, end: Callable[[str], object]) -> None:
    key = roomy_key()
    assert shared.ask(SYMBOLS, key=key).status_code == 200
    end(key)
    wait_until(lambda: shared.ask(SYMBOLS, key=key).status_code == 401)


def test_rolled_key_works_beside_its_successor_until_the_overlap_ends(clock: Traveller, shared: Api) -> None:
    old = roomy_key()
    _, new = roll_key(row_of(old), overlap_hours=24, by="test")

    def statuses() -> list[int]:
        return [shared.ask(SYMBOLS, key=key).status_code for key in (old, new)]

    during = statuses()
    clock.move_to(timezone.now() + timedelta(hours=24))
    assert (during, statuses()) == ([200, 200], [401, 200])


# What the address of a caller decides.
def at(server: Server, address: str) -> httpx.Client:
    transport = httpx.HTTPTransport(local_address=address)
    return httpx.Client(base_url=server.url, transport=transport, timeout=PATIENCE_S)


def test_sixty_failures_a_minute_are_answered_401_and_then_429(shared_server: Server, shared: Api) -> None:
    wrong = {"X-API-Key": "letmein"}
    with at(shared_server, "127.0.2.1") as client:
        answers = [client.get(SYMBOLS, headers=wrong if odd % 2 else {}) for odd in range(60)]
        assert [answer.status_code for answer in answers] == [401] * 60
        for headers in ({}, wrong):
            refused = client.get(SYMBOLS, headers=headers)
            message = refusal(refused, 429, "rate_limit_exceeded")
            assert 1 <= int(refused.headers["Retry-After"]) <= 60
            assert message.endswith(f"Try again in {refused.headers['Retry-After']} s.")
            assert "X-RateLimit-Limit" not in refused.headers
        # A valid key from that address is not affected, however often it comes.
        valid = {"X-API-Key": shared.key}
        assert {client.get(SYMBOLS, headers=valid).status_code for _ in range(61)} == {200}
        assert client.get(SYMBOLS).status_code == 429
        assert client.options(SYMBOLS).status_code == 204
    with at(shared_server, "127.0.2.2") as neighbour:
        assert neighbour.get(SYMBOLS).status_code == 401


def test_forwarded_address_is_not_believed(shared_server: Server) -> None:
    with at(shared_server, "127.0.2.3") as client:
        headers = ({"X-Forwarded-For": f"192.0.2.{number}"} for number in range(61))
        statuses = [client.get(SYMBOLS, headers=each).status_code for each in headers]
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
        assert client.get(SYMBOLS, headers=demo).status_code == 200
        refusal(client.get(SYMBOLS, headers=demo | headers), 401, "invalid_api_key")
    if "Host" not in headers:
        assert shared.ask(SYMBOLS, headers=headers).status_code == 200


# In production, a key that came without TLS.
@pytest.mark.parametrize(
    ("said", "changes", "status"),
    [
        *((said, {}, 403) for said in ("http", "HTTP", "http, https", "ws")),
        *((said, {}, 200) for said in (None, "https", "https, http")),
        ("http", {"PRODUCTION": False}, 200),
        ("http", {"ALLOW_PLAIN_HTTP": True}, 200),
    ],
    ids=str,
)
def test_key_over_plain_http_is_refused_in_production(
    shared: Api, settings: Settings, said: str | None, changes: dict[str, Any], status: int
) -> None:
    for name, value in ({"PRODUCTION": True} | changes).items():
        setattr(settings, name, value)
    answer = shared.ask(SYMBOLS, headers={"X-Forwarded-Proto": said} if said else {})
    assert answer.status_code == status
    if status == 403:
        refusal(answer, 403, "https_required")
        assert "X-RateLimit-Limit" not in answer.headers


def test_keys_over_plain_http_are_not_even_looked_at(shared: Api, settings: Settings) -> None:
    settings.PRODUCTION = True
    plain = {"X-Forwarded-Proto": "http"}
    refusal(shared.ask(SYMBOLS, key="wrong", headers=plain), 403, "https_required")
    refusal(shared.ask(SYMBOLS, key=None, headers=plain), 401, "missing_api_key")
    pushed = shared.post("/ingest/ticks", headers=plain | {"Authorization": "Bearer tw_ingest_x"}, json={})
    refusal(pushed, 403, "https_required")
