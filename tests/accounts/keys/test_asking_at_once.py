"""Who asks without paying, on two hundred connections at once, takes one of the API's threads."""

from __future__ import annotations

import asyncio
import inspect
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

pytestmark = pytest.mark.served

CONNECTIONS = 200
# SharedLookups.ask, and what in_thread_promptly waits in.
WAITING = frozenset({"ask", "is_done_within"})


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


def calls_of(task: asyncio.Task[None]) -> Iterator[str]:
    """The coroutines that wait for each other, from the outermost to the innermost."""
    waiting: Any = task.get_coro()
    while inspect.iscoroutine(waiting):
        yield waiting.cr_code.co_name
        waiting = waiting.cr_await


async def until_all_wait(server: Server, asked: list[asyncio.Task[httpx.Response]]) -> None:
    """Each of the requests waits for the database, or for another one's look at it, unless it is answered."""

    async def waiting() -> int:
        tasks = server.state.tasks
        found = sum(not WAITING.isdisjoint(calls_of(task)) for task in tasks)
        # What was put into the queue of the threads in this turn of the loop is there after it.
        await asyncio.sleep(0)
        return found

    async with asyncio.timeout(PATIENCE_S):
        while True:
            # In this order none is counted twice.
            answered = sum(each.done() for each in asked)
            if answered + await asyncio.to_thread(server.run, waiting()) == len(asked):
                return
            await asyncio.sleep(0.01)


async def told_to_another(server: Server, api: Api, asked: list[asyncio.Task[httpx.Response]]) -> int:
    """What another customer is told.

    Work in the background leaves a place now and then: whoever finds it waits, and the next one asks.
    """
    others = list[asyncio.Task[httpx.Response]]()
    async with (
        httpx.AsyncClient(base_url=server.url, timeout=PATIENCE_S) as client,
        asyncio.timeout(PATIENCE_S),
        asyncio.TaskGroup() as asking,
    ):
        while not (answered := [each for each in others if each.done()]):
            ask = client.get("/api/signals", headers={"X-API-Key": api.key})
            others.append(asking.create_task(ask))
            await until_all_wait(server, [*asked, *others])
        for each in others:
            each.cancel()
    return answered[0].result().status_code


async def storm(server: Server, api: Api, path: str, keys: list[str], table: str) -> tuple[int, Any, int]:
    """What another customer is told meanwhile, what those who asked were told, and how often was looked."""
    limits = httpx.Limits(max_connections=CONNECTIONS)
    async with httpx.AsyncClient(base_url=server.url, timeout=PATIENCE_S, limits=limits) as client:
        with slow(table) as (go, looks):
            asked = [
                asyncio.create_task(client.get(path, headers={"X-API-Key": keys[number % len(keys)]}))
                for number in range(CONNECTIONS)
            ]
            await until_all_wait(server, asked)
            other = await told_to_another(server, api, asked)
            go.set()
            answers = await asyncio.gather(*asked)
    return other, {answer.status_code for answer in answers}, len(looks)


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
