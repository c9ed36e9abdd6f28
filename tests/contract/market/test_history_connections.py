"""Clients of history that hang up, read slowly or come in crowds, and a database that fails meanwhile."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from django.db import OperationalError

from market.api import history_pages
from market.api.history_pages import open_pages
from market.store.candle_texts import PART
from tests.client import Api, Server
from tests.contract.answers import refusal
from tests.databases.queries import around_statements
from tests.factories import make_account, make_instrument, make_key, make_tier
from tests.patience import PATIENCE_S, wait_until

from .stored_minutes import CSV, PATH, minutes, store

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


class SlowReader:
    """Asks for the longest page and reads none of it."""

    def __init__(self, server: Server, key: str) -> None:
        self._socket = socket.socket()
        # Little fits on the way, so the server has to wait.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._socket.settimeout(PATIENCE_S)
        self._socket.connect(("127.0.0.1", server.port))
        head = f"GET {PAGE} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: {key}\r\n\r\n"
        self._socket.sendall(head.encode())

    def read(self) -> bytes:
        return self._socket.recv(4096)

    def hang_up(self) -> None:
        self._socket.close()


@pytest.fixture
def readers(shared_server: Server) -> Iterator[Callable[[str], SlowReader]]:
    made: list[SlowReader] = []

    def make(key: str) -> SlowReader:
        made.append(SlowReader(shared_server, key))
        return made[-1]

    yield make
    for each in made:
        each.hang_up()


def parts_read(asked: list[str]) -> int:
    return sum("group_concat(" in each or "string_agg(" in each for each in asked)


def test_page_waits_for_a_client_that_does_not_read_and_ends_when_it_leaves(
    shared: Api, readers: Callable[[str], SlowReader]
) -> None:
    statements: list[str] = []

    def note(sql: str, run: Callable[[], Any]) -> Any:
        statements.append(sql)
        return run()

    with around_statements(note):
        reader = readers(shared.key)
        assert reader.read().startswith(b"HTTP/1.1 200")
        assert len(open_pages) == 1
        # Others are answered, and nothing of the database is held by it.
        assert shared.ask(f"{PATH}?limit=10").json()["count"] == 10
        reader.hang_up()
        wait_until(lambda: not len(open_pages))

    assert parts_read(statements) - 1 < STORED / PART


def test_account_may_read_some_pages_at_a_time(
    shared: Api, readers: Callable[[str], SlowReader], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_pages, "MOST_OF_AN_ACCOUNT", 2)
    reading = [readers(shared.key) for _ in range(2)]
    for reader in reading:
        assert reader.read().startswith(b"HTTP/1.1 200")

    refused = shared.ask(f"{PATH}?limit=1")
    assert "2 pages of history at a time" in refusal(refused, 503, "overloaded")
    assert refused.headers["Retry-After"] == "1"
    other = make_key(make_account(tier=make_tier("another")))
    assert shared.ask(f"{PATH}?limit=1", key=other).status_code == 200

    reading[0].hang_up()
    wait_until(lambda: len(open_pages) < 2)
    assert shared.ask(f"{PATH}?limit=1").status_code == 200


def test_process_reads_some_pages_at_a_time(
    shared: Api, readers: Callable[[str], SlowReader], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_pages, "MOST_PAGES", 1)
    assert readers(shared.key).read().startswith(b"HTTP/1.1 200")

    other = make_key(make_account(tier=make_tier("another")))
    refusal(shared.ask(f"{PATH}?limit=1", key=other), 503, "overloaded")


@pytest.mark.parametrize("query", ["limit=1&cursor=none", "limit=0", "start=2&end=1"])
def test_refusal_leaves_no_page_open(shared: Api, query: str) -> None:
    assert shared.ask(f"{PATH}?{query}").status_code == 400
    assert len(open_pages) == 0


def test_head_leaves_no_page_open(shared: Api) -> None:
    assert shared.ask(PAGE, method="HEAD").status_code == 200
    wait_until(lambda: not len(open_pages))


class FailingDatabase:
    """Answers some statements that read candles as text, then none."""

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
