"""Bursts of pages: what does not fit into the queue is refused at once, and others are answered meanwhile.
How much memory and time they take, tests/nightly measures."""

from __future__ import annotations

import asyncio
import json
import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest

from core.contract.errors import Overloaded
from pages.handler import MOST_WAITING, refuse_page
from tests.factories import make_account, make_instrument, make_user
from tests.patience import PATIENCE_S, until
from tests.reliability.fixtures import Tell
from tests.reliability.services.processes import Installation, Process
from tests.signals_feed.published_signals import make_published

PAGES, API_THREADS, BEYOND = 3, 4, 50
NAME = "bursting"
PATH = f"/publishers/{NAME}"
OTHERS = {"/healthz": 200, "/livez": 200, "/api/symbols": 401}
BIG_FILE = "/static/unfold/css/styles.css"
ACCEPTS = (b"text/html,*/*;q=0.8", b"application/json")
CONNECTIONS = (
    "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
)


@pytest.fixture(scope="module")
def server(scaled: Installation) -> Iterator[Process]:
    with scaled.web_process(PAGE_THREADS=str(PAGES), API_THREADS=str(API_THREADS)) as running:
        yield running


def threads(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


@pytest.mark.row("37", "503 with Retry-After; connections and threads bounded, no 500")
def test_requests_beyond_the_queue_are_asked_to_retry(
    scaled: Installation, server: Process, tell: Tell
) -> None:
    with scaled.orm():
        # Others verify the ledger of this database.
        make_published(make_instrument("BURST"), user=make_account(make_user(NAME)).user)
    assert server.ask(PATH).status_code == 200
    before = threads(server.pid)
    with psycopg.connect(scaled.database_url) as holder:
        # No page is made as long as this is held.
        holder.execute("LOCK TABLE accounts_user IN ACCESS EXCLUSIVE MODE")
        statuses, others = asyncio.run(beyond_the_queue(server, holder))
    with psycopg.connect(scaled.database_url) as asking:
        (connections,) = asking.execute(CONNECTIONS).fetchone() or (0,)
    tell(f"{statuses.total()} simultaneous requests: {dict(statuses)}; meanwhile {others}")
    assert set(statuses) <= {200, 503}
    assert statuses[503] >= BEYOND
    assert others == OTHERS
    # Those of pages and of the API, of control events, and of who asks how the service is doing.
    assert connections <= PAGES + API_THREADS + 2
    assert threads(server.pid) <= before + PAGES


async def beyond_the_queue(
    server: Process, holder: psycopg.Connection[object]
) -> tuple[Counter[int], dict[str, int]]:
    """What pages are answered, and others before the first page of them can be made."""
    statuses: Counter[int] = Counter()
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=server.url, timeout=PATIENCE_S, limits=limits) as client:

        async def ask() -> None:
            # Without a cookie all get the page that was made for one of them.
            answer = await client.get(PATH, headers={"Cookie": "theme=dark"})
            assert answer.status_code == 200 or "Retry-After" in answer.headers
            statuses[answer.status_code] += 1

        pages = [asyncio.create_task(ask()) for _ in range(MOST_WAITING + PAGES + BEYOND)]
        await until(lambda: statuses[503] >= BEYOND)
        others = {path: (await client.get(path)).status_code for path in OTHERS}
        assert statuses[200] == 0
        holder.rollback()
        await asyncio.gather(*pages)
    return statuses, others


@pytest.mark.row("37", "503 with Retry-After")
def test_an_error_is_a_page_for_browsers_and_json_for_programs() -> None:
    shown, told = (
        refuse_page({"headers": [(b"accept", accept)]}, Overloaded(retry_after=2)) for accept in ACCEPTS
    )
    assert (shown.status_code, told.status_code) == (503, 503)
    assert shown["Retry-After"] == told["Retry-After"] == "2"
    assert b"reload this page" in shown.content
    assert "script-src 'self'" in shown["Content-Security-Policy"]
    assert json.loads(told.content)["error"]["code"] == "overloaded"


@pytest.mark.row("37, 43", "no thread occupied by slow clients")
def test_slow_clients_occupy_no_page_thread(server: Process) -> None:
    """More of them than threads: an unfinished body, and a big file that nobody reads."""
    head = f"POST {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n"
    big = f"GET {BIG_FILE} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    slow = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(4 * PAGES)]
    try:
        for number, client in enumerate(slow):
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.sendall((head if number % 2 else big).encode())
        assert server.ask(PATH).status_code == 200
    finally:
        for client in slow:
            client.close()
