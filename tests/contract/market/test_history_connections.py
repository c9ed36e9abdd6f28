"""Clients of history that hang up or come in crowds, and a database that fails meanwhile."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from django.db import OperationalError

from accounts.models import Account
from core.times import MINUTE_MS
from market import runtime
from market.api.history import MOST_OF_AN_ACCOUNT, MOST_PAGES, open_pages
from market.prices.history import KEPT
from market.store.candle_rows import PART
from tests.client import Api, Server
from tests.contract.answers import refusal
from tests.databases.queries import around_statements
from tests.factories import make_account, make_instrument, make_key, make_tier
from tests.patience import PATIENCE_S, wait_until

from .stored_minutes import ARROW, CSV, NOON_MS, PATH, minutes, store

PAGE = f"{PATH}?limit=10000"
STORED = 10_000


@pytest.fixture(scope="module", autouse=True)
def instruments(shared: Api) -> None:
    make_instrument("EURUSD")
    store("EURUSD", minutes(STORED))


@pytest.fixture(autouse=True)
def _nothing_is_left(shared: Api) -> Iterator[None]:
    """Every page that was begun in a test is gone when it ends."""
    yield
    wait_until(lambda: not len(open_pages))


def parts_read(asked: list[str]) -> int:
    return sum(each.endswith(f" LIMIT {PART}") for each in asked)


class SlowDatabase:
    """Answers the first statement that reads a part of a page; the others wait."""

    def __init__(self) -> None:
        self.read: list[str] = []
        self.goes_on = threading.Event()

    def __call__(self, sql: str, run: Callable[[], Any]) -> Any:
        if parts_read([sql]):
            self.read.append(sql)
            if len(self.read) > 1:
                self.goes_on.wait(PATIENCE_S)
        return run()


def test_page_is_read_no_further_once_its_client_hangs_up(shared_server: Server, shared: Api) -> None:
    connected = len(shared_server.state.connections)
    with around_statements(database := SlowDatabase()):
        with socket.create_connection(("127.0.0.1", shared_server.port), timeout=PATIENCE_S) as client:
            client.sendall(
                f"GET {PAGE} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: {shared.key}\r\n\r\n".encode()
            )
            assert client.recv(12, socket.MSG_WAITALL) == b"HTTP/1.1 200"
            wait_until(lambda: len(database.read) == 2)
            assert len(open_pages) == 1
        wait_until(lambda: len(shared_server.state.connections) == connected)
        database.goes_on.set()
        wait_until(lambda: not len(open_pages))
    assert len(database.read) == 2


@pytest.fixture
def other() -> Account:
    return make_account(tier=make_tier("another"))


def test_account_may_read_some_pages_at_a_time(shared: Api, other: Account) -> None:
    key = make_key(other)
    sent = [open_pages.enter(str(other.pk)) for _ in range(MOST_OF_AN_ACCOUNT)]
    refused = shared.ask(f"{PATH}?limit=1", key=key)
    message = refusal(refused, 503, "overloaded")
    assert f"{MOST_OF_AN_ACCOUNT} pages" in message
    assert refused.headers["Retry-After"] == "1"
    assert shared.ask(f"{PATH}?limit=1").status_code == 200
    open_pages.leave(sent.pop())
    assert shared.ask(f"{PATH}?limit=1", key=key).status_code == 200


def test_process_sends_some_pages_at_a_time(shared: Api) -> None:
    sent = [open_pages.enter(f"-{number}") for number in range(MOST_PAGES)]
    refusal(shared.ask(f"{PATH}?limit=1"), 503, "overloaded")
    # One whose answer is dropped, for whatever reason, is not counted any more.
    sent.pop()
    assert shared.ask(f"{PATH}?limit=1").status_code == 200


@pytest.mark.parametrize("query", ["limit=1&cursor=none", "limit=0", "start=2&end=1"])
def test_refusal_and_head_leave_no_page_open(shared: Api, query: str) -> None:
    assert shared.ask(f"{PATH}?{query}").status_code == 400
    assert len(open_pages) == 0
    assert shared.ask(PAGE, method="HEAD").status_code == 200


class FailingDatabase:
    """Answers some statements that read a part of a page, then none."""

    def __init__(self, answered: int) -> None:
        self._left = answered

    def __call__(self, sql: str, run: Callable[[], Any]) -> Any:
        if parts_read([sql]):
            self._left -= 1
            if self._left < 0:
                raise OperationalError("the server closed the connection unexpectedly")
        return run()


@pytest.mark.parametrize("accept", ["application/json", CSV])
@pytest.mark.parametrize("answered", [0, 3])
@pytest.mark.parametrize("coding", ["gzip", "identity"])
def test_page_whose_database_fails_breaks_off(shared: Api, accept: str, answered: int, coding: str) -> None:
    with around_statements(FailingDatabase(answered)), pytest.raises(httpx.RemoteProtocolError):
        shared.ask(PAGE, headers={"Accept": accept, "Accept-Encoding": coding})
    assert shared.ask(f"{PATH}?limit=1").status_code == 200


def test_database_that_fails_before_a_page_begins_is_told(shared: Api) -> None:
    def fail(sql: str, run: Callable[[], Any]) -> Any:
        if "OFFSET" in sql:
            raise OperationalError("the server closed the connection unexpectedly")
        return run()

    with around_statements(fail):
        refusal(shared.ask(PAGE), 503, "overloaded")
    assert len(open_pages) == 0


@pytest.mark.parametrize("accept", ["application/json", CSV, ARROW])
def test_last_bars_come_from_memory_while_the_database_is_away(
    shared_server: Server, shared: Api, accept: str
) -> None:
    shared_server.run(runtime.market.reload({"symbol": "EURUSD"}))
    first_ms, end_ms = (NOON_MS + minute * MINUTE_MS for minute in (STORED - KEPT, STORED - 1))

    def ask(start_ms: int, limit: int = KEPT) -> httpx.Response:
        query = f"start={start_ms}&end={end_ms}&limit={limit}"
        return shared.ask(f"{PATH}?{query}", headers={"Accept": accept})

    def fail(sql: str, run: Callable[[], Any]) -> Any:
        if "market_" in sql:
            raise OperationalError("the server closed the connection unexpectedly")
        return run()

    def answers() -> list[tuple[bytes, str | None]]:
        asked = ask(first_ms), ask(first_ms + 1, 7), ask(end_ms - 1)
        return [(each.content, each.headers.get("X-Next-Cursor")) for each in asked]

    stored = answers()
    with around_statements(fail):
        assert answers() == stored
        refusal(ask(first_ms - 1), 503, "overloaded")


def whole_of(server: Server, request: str) -> tuple[str, bytes]:
    """The head and the body of what is sent until the connection ends."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S) as client:
        client.sendall(request.encode())
        heard = b"".join(iter(lambda: client.recv(1 << 16), b""))
    head, _, body = heard.partition(b"\r\n\r\n")
    return head.decode().lower(), body


def test_client_of_http_1_0_gets_a_length_and_no_chunks_and_is_told_of_a_failure(
    shared_server: Server, shared: Api
) -> None:
    head, body = whole_of(shared_server, f"GET {PAGE} HTTP/1.0\r\nX-API-Key: {shared.key}\r\n\r\n")
    assert "transfer-encoding" not in head
    assert f"content-length: {len(body)}" in head
    assert body == shared.ask(PAGE).content
    with around_statements(FailingDatabase(3)):
        head, _ = whole_of(shared_server, f"GET {PAGE} HTTP/1.0\r\nX-API-Key: {shared.key}\r\n\r\n")
    assert " 503 " in head
