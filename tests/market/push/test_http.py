from __future__ import annotations

import json
import logging
from socket import create_connection
from typing import Any

import httpx
import pytest
from django.test import AsyncClient

from accounts.key_text import generate_key
from core.clock import now_ms
from market.push.keys import LEAD, allow_symbols, ingest_key_cache, revoke_ingest_key
from market.push.views import TickViewSet
from tests.client import Server
from tests.contract.streams.client import shortened
from tests.factories import make_account, make_instrument
from tests.patience import PATIENCE_S

from .conftest import (
    engine_beside,
    lock,
    logged_source,
    make_api_key,
    make_ingest_key,
    make_tick,
    read_events,
    row_of,
)

PATH = "/ingest/ticks"


def post(client: httpx.Client, key: str | None, body: Any, **options: Any) -> httpx.Response:
    headers = {"X-Ingest-Key": key} if key else {}
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return client.post(PATH, content=content, headers=headers, **options)


def codes(response: httpx.Response) -> list[tuple[int, str]]:
    assert response.status_code == 200, response.text
    return [(tick["index"], tick["code"]) for tick in response.json()["rejected"]]


def error(response: httpx.Response) -> tuple[int, str]:
    """Status and code, out of the one error body."""
    told = response.json()["error"]
    assert told["status"] == response.status_code
    assert told["request_id"] == response.headers["X-Request-Id"]
    return response.status_code, told["code"]


def test_tick_that_is_taken_is_the_quote(client: httpx.Client, key: str, symbol: str) -> None:
    answer = post(client, key, make_tick(symbol, bid=2.5, ask=2.75))
    assert (answer.status_code, answer.json()) == (200, {"accepted": 1, "rejected": []})
    quote = client.get(f"/api/market/{symbol}/quote", headers={"X-API-Key": make_api_key()}).json()
    assert (quote["bid"], quote["ask"]) == (2.5, 2.75)


@pytest.mark.parametrize("path", [PATH, f"{PATH}/"])
@pytest.mark.parametrize("form", ["X-Ingest-Key: {}", "Authorization: Bearer {}", "authorization: bearer {}"])
def test_key_may_come_in_either_header(
    client: httpx.Client, key: str, symbol: str, path: str, form: str
) -> None:
    name, value = form.format(key).split(": ")
    answer = client.post(path, json=make_tick(symbol), headers={name: value})
    assert answer.json()["accepted"] == 1


def test_each_refused_tick_is_told_with_its_place_and_why(
    client: httpx.Client, key: str, symbol: str
) -> None:
    good = make_tick(symbol)
    ticks = [
        make_tick("NOPE"),
        make_tick(symbol, bid=2, ask=1),
        {**good, "bid": "1"},
        make_tick(symbol, bid=0, ask=0),
        good,
        {**good, "time": 4_000_000_000_000},
    ]
    answer = post(client, key, {"ticks": ticks})
    assert answer.json()["accepted"] == 1
    assert codes(answer) == [
        (0, "unknown_symbol"),
        (1, "crossed"),
        (2, "malformed"),
        (3, "not_positive"),
        (5, "future"),
    ]
    assert answer.json()["rejected"][1]["message"] == "The ask is below the bid."


def test_same_number_again_is_a_duplicate_and_what_is_older_than_the_last_is_refused(
    client: httpx.Client, key: str, symbol: str
) -> None:
    time_ms = now_ms()
    ticks = [make_tick(symbol, time=time_ms + place, seq=place) for place in range(3)]
    assert codes(post(client, key, ticks)) == []
    assert codes(post(client, key, ticks)) == [(0, "duplicate"), (1, "duplicate"), (2, "duplicate")]
    assert codes(post(client, key, make_tick(symbol, time=time_ms + 3, seq=3))) == []
    assert codes(post(client, key, make_tick(symbol, time=time_ms + 2))) == [(0, "older_than_last")]


def test_key_sends_only_the_symbols_it_may(service: Server, client: httpx.Client, symbol: str) -> None:
    other = make_instrument(f"{symbol}X").symbol
    key = make_ingest_key(symbols=symbol)
    assert codes(post(client, key, [make_tick(other), make_tick(symbol)])) == [(0, "symbol_not_allowed")]
    allow_symbols(row_of(key), f"{symbol} {other}", by="test")
    read_events(service)
    assert codes(post(client, key, make_tick(other))) == []


def test_instrument_is_priced_by_the_source_it_names(client: httpx.Client, symbol: str) -> None:
    named = make_instrument(f"{symbol}X", source="push:bridge").symbol
    assert codes(post(client, make_ingest_key("desk"), make_tick(named))) == [(0, "not_its_source")]
    assert codes(post(client, make_ingest_key("bridge"), make_tick(named))) == []


def test_a_thousand_ticks_are_taken_and_one_more_is_too_much(
    client: httpx.Client, key: str, symbol: str
) -> None:
    time_ms = now_ms() - 2_000
    ticks = [make_tick(symbol, time=time_ms + place) for place in range(1_001)]
    refused = post(client, key, ticks)
    assert (error(refused), refused.json()["error"]["max"]) == ((413, "too_large"), 1_000)
    assert post(client, key, ticks[:1_000]).json() == {"accepted": 1_000, "rejected": []}
    assert post(client, key, []).json() == {"accepted": 0, "rejected": []}


@pytest.mark.parametrize("is_chunked", [False, True])
def test_body_above_a_mebibyte_is_too_much(client: httpx.Client, key: str, is_chunked: bool) -> None:
    body = b"[" + b" " * (3 * 1_048_576) + b"]"
    parts = (body[at : at + 65_536] for at in range(0, len(body), 65_536))
    refused = client.post(PATH, content=parts if is_chunked else body, headers={"X-Ingest-Key": key})
    assert (error(refused), refused.json()["error"]["max"]) == ((413, "too_large"), 1_048_576)
    assert post(client, key, b"[" + b" " * 1_048_574 + b"]").status_code == 200


def test_body_that_does_not_end_is_not_waited_for(service: Server, key: str) -> None:
    head = f"POST {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Ingest-Key: {key}\r\nContent-Length: 9\r\n\r\n[{{"
    with (
        shortened(TickViewSet, "BODY_WITHIN_S", 0.05),
        create_connection(("127.0.0.1", service.port), timeout=PATIENCE_S) as connection,
    ):
        connection.sendall(head.encode())
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b'"code":"body_timeout"' in answer


def test_body_in_tiny_pieces_or_with_a_zero_behind_it_is_whole(
    client: httpx.Client, key: str, symbol: str
) -> None:
    text = json.dumps(make_tick(symbol)).encode()
    pieces = (text[at : at + 1] for at in range(len(text)))
    assert codes(client.post(PATH, content=pieces, headers={"X-Ingest-Key": key})) == []
    assert codes(post(client, key, json.dumps(make_tick(symbol, bid=1.0842)).encode() + b"\0")) == []


@pytest.mark.parametrize("body", [b"", b"nonsense", b"[NaN]", b"5", b'{"ticks":5}', b"[" * 100_000])
def test_body_that_is_no_message_is_one_error_and_its_source_is_logged(
    client: httpx.Client, caplog: pytest.LogCaptureFixture, body: bytes
) -> None:
    caplog.set_level(logging.INFO, "accounts.access")
    assert error(post(client, make_ingest_key("bridge"), body)) == (400, "invalid_message")
    assert logged_source(caplog) == "bridge"


@pytest.mark.parametrize("sent", ["none", "unknown", "misspelt", "an API key", "Basic", "X-API-Key"])
def test_without_an_ingest_key_nothing_is_taken(client: httpx.Client, symbol: str, sent: str) -> None:
    headers, code = {
        "none": ({}, "missing_ingest_key"),
        "unknown": ({"X-Ingest-Key": generate_key(LEAD)}, "invalid_ingest_key"),
        "misspelt": ({"X-Ingest-Key": generate_key(LEAD)[:-1] + "_"}, "invalid_ingest_key"),
        "an API key": ({"Authorization": f"Bearer {make_api_key()}"}, "invalid_ingest_key"),
        "Basic": ({"Authorization": "Basic YTpi"}, "missing_ingest_key"),
        "X-API-Key": ({"X-API-Key": make_api_key()}, "missing_ingest_key"),
    }[sent]
    refused = client.post(PATH, json=make_tick(symbol), headers=headers)
    assert error(refused) == (401, code)
    assert refused.headers["WWW-Authenticate"] == "Bearer"


def test_ingest_key_opens_nothing_of_the_api(client: httpx.Client, key: str) -> None:
    assert error(client.get("/api/symbols", headers={"X-API-Key": key})) == (401, "invalid_api_key")
    assert client.get("/api/symbols", headers={"X-API-Key": make_api_key()}).status_code == 200


def test_last_use_is_recorded_and_a_revoked_key_ends_when_the_event_is_read(
    service: Server, client: httpx.Client
) -> None:
    key, other = make_ingest_key(), make_ingest_key()
    assert post(client, key, []).status_code == 200
    service.run(ingest_key_cache.used.record())
    assert row_of(key).last_used_at is not None
    assert row_of(other).last_used_at is None
    assert revoke_ingest_key(row_of(key), by="test")
    read_events(service)
    assert error(post(client, key, [])) == (401, "invalid_ingest_key")
    assert post(client, other, []).status_code == 200


def test_key_of_a_locked_account_sends_nothing_until_it_is_let_in_again(
    service: Server, client: httpx.Client
) -> None:
    account = make_account()
    key = make_ingest_key(account=account)
    verdicts = []
    for is_active in (True, False, True):
        lock(account, is_active=is_active)
        read_events(service)
        verdicts += [post(client, key, []).status_code for _ in range(2)]
    assert verdicts == [200, 200, 401, 401, 200, 200]


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE"])
def test_other_methods_are_refused(client: httpx.Client, key: str, method: str) -> None:
    refused = client.request(method, PATH, headers={"X-Ingest-Key": key})
    assert (refused.status_code, refused.headers["Allow"]) == (405, "POST, OPTIONS")
    assert client.request(method, PATH).status_code == 401


def test_other_origins_hosts_and_paths_are_not_let_through(client: httpx.Client, key: str) -> None:
    answer = client.options(PATH, headers={"Origin": "https://evil.example"})
    assert (answer.status_code, answer.headers["Allow"]) == (204, "POST, OPTIONS")
    assert "Access-Control-Allow-Headers" not in answer.headers
    forged = client.post(PATH, content=b"[]", headers={"X-Ingest-Key": key, "Host": "evil.example"})
    assert error(forged) == (400, "invalid_parameter")
    for path in ("/ingest", "/ingest/nothing"):
        assert client.post(path, headers={"X-Ingest-Key": key}).status_code == 404


@pytest.mark.served
def test_stock_handler_answers_the_same(service: Server, client: httpx.Client, key: str, symbol: str) -> None:
    ask = AsyncClient().post
    ticks = [make_tick(symbol), make_tick("NOPE")]
    stock = service.run(ask(PATH, ticks, "application/json", headers={"X-Ingest-Key": key}))
    assert (stock.status_code, stock.json()["accepted"]) == (200, 1)
    assert stock.json()["rejected"] == post(client, key, ticks).json()["rejected"]
    refused = service.run(ask(PATH, b" " * 1_048_577, "text/plain", headers={"X-Ingest-Key": key}))
    assert refused.status_code == 413


def test_bad_keys_are_slowed_down_and_good_ones_never(server: Server) -> None:
    key = make_ingest_key()
    with httpx.Client(base_url=server.url, timeout=PATIENCE_S) as client, engine_beside(server):
        statuses = [post(client, generate_key(LEAD), []).status_code for _ in range(61)]
        refused = post(client, "nonsense", [])
        assert post(client, key, []).status_code == 200
    assert statuses == [401] * 60 + [429]
    assert error(refused) == (429, "rate_limit_exceeded")
    assert int(refused.headers["Retry-After"]) > 0
