"""Who asks without paying, on two hundred connections at once, takes one of the API's threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from django.db.backends.utils import CursorWrapper

from tests.accounts.browser import logged_in, token_of
from tests.client import Api, Server
from tests.factories import make_account, make_key
from tests.patience import PATIENCE_S

CONNECTIONS = 200


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.threads.PROMPTLY_S", PATIENCE_S)


@contextmanager
def slow(table: str) -> Iterator[tuple[threading.Event, list[str]]]:
    """Until the event is set the database owes an answer to whoever asks for that table."""
    go, asked = threading.Event(), list[str]()
    execute: Callable[..., Any] = CursorWrapper.execute

    def held(self: CursorWrapper, sql: str, params: Any = None) -> Any:
        if f'FROM "{table}"' in sql:
            asked.append(sql)
            go.wait(PATIENCE_S)
        return execute(self, sql, params)

    CursorWrapper.execute = held  # type: ignore[method-assign,assignment]
    try:
        yield go, asked
    finally:
        go.set()
        CursorWrapper.execute = execute  # type: ignore[method-assign]


async def until_under_way(server: Server, asked: list[asyncio.Task[httpx.Response]]) -> None:
    """All of the requests are in the service, unless they are answered."""
    tasks = server.state.tasks
    async with asyncio.timeout(PATIENCE_S):
        # The server tells nobody when it has read a request.
        while len(tasks) + sum(each.done() for each in asked) < len(asked):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        # Some may still be on their way to where they wait.
        await asyncio.sleep(0.1)


async def storm(server: Server, api: Api, path: str, keys: list[str], table: str) -> tuple[int, Any, int]:
    """What another customer is told meanwhile, what those who asked were told, and how often was looked."""
    limits = httpx.Limits(max_connections=CONNECTIONS)
    async with httpx.AsyncClient(base_url=server.url, timeout=PATIENCE_S, limits=limits) as client:
        with slow(table) as (go, looks):
            asked = [
                asyncio.create_task(client.get(path, headers={"X-API-Key": keys[number % len(keys)]}))
                for number in range(CONNECTIONS)
            ]
            await until_under_way(server, asked)
            other = await asyncio.to_thread(api.ask, "/api/signals")
            go.set()
            answers = await asyncio.gather(*asked)
    return other.status_code, {answer.status_code for answer in answers}, len(looks)


@pytest.fixture
def key(server: Server) -> str:
    return make_key(make_account(tier="free"))


@pytest.fixture
def ended(server: Server) -> list[str]:
    """Tokens of a page whose session has ended."""
    page = logged_in(make_account(tier="free").user)
    tokens = [token_of(page) for _ in range(20)]
    page.logout()
    return tokens


async def test_limits_of_one_account_take_one_place(server: Server, api: Api, key: str) -> None:
    # Who is known is not looked for: this is about what a known one can ask.
    for each in (key, api.key):
        await asyncio.to_thread(api.ask, "/api/limits", key=each)
    other, told, looks = await storm(server, api, "/api/limits", [key], "accounts_aiusage")
    assert (other, told) == (200, {200})
    assert looks < 10


async def test_tokens_of_a_page_that_has_ended_take_one_place(
    server: Server, api: Api, ended: list[str]
) -> None:
    await asyncio.to_thread(api.ask, "/api/limits")
    other, told, looks = await storm(server, api, "/api/symbols", ended, "accounts_pagesession")
    assert (other, told) == (200, {401, 429})
    assert looks < 10


async def test_control_as_many_looks_of_their_own_leave_no_place(server: Server, api: Api) -> None:
    await asyncio.to_thread(api.ask, "/api/limits")
    other, told, looks = await storm(server, api, "/api/session", [api.key], "signals_feed_signal")
    assert (other, told) == (503, {200, 503})
    assert looks > 100
