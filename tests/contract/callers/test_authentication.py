from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import httpx
import pytest
from django.utils import timezone
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
_addresses = itertools.count(2)


@pytest.fixture
def stranger(shared_server: Server, shared: Api) -> Iterator[httpx.Client]:
    """A client from an address of its own, whose failures nobody else is held to."""
    transport = httpx.HTTPTransport(local_address=f"127.0.1.{next(_addresses)}")
    with httpx.Client(base_url=shared_server.url, transport=transport, timeout=PATIENCE_S) as client:
        yield client


def knock(client: httpx.Client, key: str | None, path: str = "/api/symbols") -> httpx.Response:
    return client.get(path, headers={} if key is None else {b"X-API-Key": key.encode("latin-1")})


def roomy_key(**changes: Any) -> str:
    return make_key(make_account(tier="roomy"), **changes)


def of_inactive_user() -> str:
    return make_key(make_account(make_user(is_active=False), tier="roomy"))


BAD_KEYS: dict[str, Callable[[], str]] = {
    "unknown": lambda: UNKNOWN,
    "revoked": lambda: roomy_key(revoked_at=NOON),
    "expired": lambda: roomy_key(expires_at=NOON),
    "of an inactive user": of_inactive_user,
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
    assert stranger.request(method, "/api/symbols").status_code == 401


@pytest.mark.parametrize("kind", BAD_KEYS)
def test_bad_keys_are_all_answered_alike(stranger: httpx.Client, kind: str) -> None:
    answers = [knock(stranger, key) for key in (UNKNOWN, BAD_KEYS[kind]())]

    for answer in answers:
        refusal(answer, 401, "invalid_api_key")
        assert answer.headers["WWW-Authenticate"] == "ApiKey"
    unknown, other = (answer.text.replace(answer.headers["X-Request-Id"], "") for answer in answers)
    assert unknown == other
    assert [*answers[0].headers] == [*answers[1].headers]


def test_good_key_opens(stranger: httpx.Client, shared: Api) -> None:
    assert knock(stranger, shared.key).status_code == 200


@pytest.mark.parametrize("name", ["x-api-key", "X-Api-Key", "X-API-KEY"])
def test_case_of_the_header_does_not_matter(stranger: httpx.Client, shared: Api, name: str) -> None:
    assert stranger.get("/api/symbols", headers={name: shared.key}).status_code == 200


@pytest.mark.parametrize("query", ["api_key", "X-API-Key", "x-api-key", "key", "token"])
def test_key_in_the_url_is_not_read_nor_logged(
    stranger: httpx.Client, shared: Api, caplog: pytest.LogCaptureFixture, query: str
) -> None:
    with caplog.at_level(logging.INFO, "accounts.access"):
        refusal(stranger.get(f"/api/symbols?{query}={shared.key}"), 401, "missing_api_key")

    # The client's own log lines tell the whole URL; ours are meant.
    said = (record for record in caplog.records if record.name == "accounts.access")
    # How many more there were of a flood before may be told at any time.
    (record,) = (record for record in said if not hasattr(record, "count"))
    assert record.getMessage() == "GET /api/symbols 401"
    assert shared.key not in str(record.__dict__)


@pytest.mark.parametrize("header", ["Authorization", "Cookie", "Sec-WebSocket-Protocol"])
def test_key_in_another_header_is_not_read(stranger: httpx.Client, shared: Api, header: str) -> None:
    for value in (shared.key, f"ApiKey {shared.key}", f"X-API-Key={shared.key}"):
        refusal(stranger.get("/api/symbols", headers={header: value}), 401, "missing_api_key")


def test_authorization_header_is_named_as_one_that_is_not_read(stranger: httpx.Client, shared: Api) -> None:
    bearer = {"Authorization": f"Bearer {shared.key}"}
    message = refusal(stranger.get("/api/symbols", headers=bearer), 401, "missing_api_key")
    assert "X-API-Key" in message
    assert "Authorization header is not read" in message
    assert shared.key not in message
    assert "Authorization" not in refusal(stranger.get("/api/symbols"), 401, "missing_api_key")


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        pytest.param([b"X_API_Key: %s"], "missing_api_key", id="underscores"),
        pytest.param([b"X-API_Key: %s"], "missing_api_key", id="one underscore"),
        pytest.param([b"X-API-Key: %s", b"X-API-Key: %s"], "invalid_api_key", id="twice"),
        pytest.param([b"X-API-Key: %s", b"x-api-key: other"], "invalid_api_key", id="another"),
        pytest.param([b"X-API-Key: %s"] * 50, "invalid_api_key", id="50 times"),
        pytest.param([b"X-API-Key:"], "missing_api_key", id="empty"),
    ],
)
def test_headers_that_name_a_good_key_in_a_wrong_way(
    shared_server: Server, shared: Api, lines: list[bytes], code: str
) -> None:
    control = raw_get(shared_server, b"/api/symbols", b"X-API-Key: " + shared.key.encode())
    answer = raw_get(
        shared_server, b"/api/symbols", *(line.replace(b"%s", shared.key.encode()) for line in lines)
    )

    assert control.status == 200
    assert (answer.status, answer.code) == (401, code)


def test_revoked_key_ends(shared: Api) -> None:
    secret = roomy_key()
    assert shared.ask("/api/symbols", key=secret).status_code == 200
    revoke_key(ApiKey.objects.get(prefix=prefix_of(secret)), by="test")

    wait_until(lambda: shared.ask("/api/symbols", key=secret).status_code == 401)


def test_keys_of_a_user_who_was_locked_out_end(shared: Api) -> None:
    account = make_account(tier="roomy")
    secret = make_key(account)
    assert shared.ask("/api/symbols", key=secret).status_code == 200
    account.user.is_active = False
    account.user.save()
    save_user_access(Account.objects.get(pk=account.pk), by="test")

    wait_until(lambda: shared.ask("/api/symbols", key=secret).status_code == 401)


def test_rolled_key_works_beside_its_successor_until_the_overlap_ends(clock: Traveller, shared: Api) -> None:
    old = roomy_key()
    _, new = roll_key(ApiKey.objects.get(prefix=prefix_of(old)), overlap_hours=24, by="test")

    def statuses() -> list[int]:
        return [shared.ask("/api/symbols", key=key).status_code for key in (old, new)]

    during = statuses()
    clock.move_to(timezone.now() + timedelta(hours=24))

    assert (during, statuses()) == ([200, 200], [401, 200])


def test_key_rolled_without_overlap_ends(shared: Api) -> None:
    old = roomy_key()
    assert shared.ask("/api/symbols", key=old).status_code == 200
    _, new = roll_key(ApiKey.objects.get(prefix=prefix_of(old)), overlap_hours=0, by="test")

    wait_until(lambda: shared.ask("/api/symbols", key=old).status_code == 401)
    assert shared.ask("/api/symbols", key=new).status_code == 200
