"""Bursts of pages: few threads and connections make them, and quotes do not wait for them."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import httpx
import pytest
from pytest_django import DjangoDbBlocker

from accounts.models import User
from core.contract.errors import Overloaded
from pages.handler import MOST_WAITING, refuse_page
from pages.threads import PATIENCE_S as MOST_WAIT_S
from tests.factories import make_account, make_signal, make_tiers
from tests.patience import PATIENCE_S
from tests.reliability.clients.measures import Memory, percentile
from tests.reliability.clients.meters import Heard, listening, tried
from tests.reliability.fixtures import Tell
from tests.reliability.services.flow import Flow
from tests.reliability.services.processes import Installation, Process
from tests.reliability.services.stream_services import StreamService, streaming

from .page_bursts import asking, burst, open_files, threads

AT_ONCE, ROUNDS, WARM_ROUNDS = 60, 15, 3
SYMBOL, TICKS_A_SECOND, LISTENERS, BESIDE_S = "BESIDE", 40, 10, 3.0
PAGES, API_THREADS = 3, 4
GROWN_MIB = 40
DATABASE = "embedded.sqlite3"
BIG_FILE = "/static/unfold/css/styles.css"
ACCEPTS = (b"text/html,*/*;q=0.8", b"application/json")
pytestmark = pytest.mark.usefixtures("rows")


@pytest.fixture(scope="module")
def service(embedded_for_module: Installation, django_db_blocker: DjangoDbBlocker) -> Iterator[StreamService]:
    with django_db_blocker.unblock():
        with embedded_for_module.orm():
            make_tiers()
            make_signal(user=make_account().user)
        sizes = {"PAGE_THREADS": str(PAGES), "API_THREADS": str(API_THREADS)}
        with streaming(embedded_for_module, 1, [SYMBOL], **sizes) as running:
            yield running


@pytest.fixture
def server(service: StreamService) -> Process:
    return service.servers[0]


@pytest.fixture
def path(embedded_for_module: Installation) -> str:
    with embedded_for_module.orm():
        return f"/publishers/{User.objects.get(signals__isnull=False).username}"


@pytest.mark.row("37", "connections and threads bounded, memory flat, no 500")
def test_bursts_of_pages_add_neither_connections_nor_threads_nor_memory(
    server: Process, path: str, tell: Tell
) -> None:
    asyncio.run(burst(server, path, AT_ONCE, WARM_ROUNDS))
    memory = Memory(server.pid)
    before = threads(server.pid)
    rounds = [timed_burst(server, path) for _ in range(ROUNDS)]
    statuses = sum((found for found, _ in rounds), Counter[int]())
    memory.look()
    connections = open_files(server.pid, DATABASE)
    tell(
        f"{statuses.total()} pages in bursts of {AT_ONCE}: {dict(statuses)}; connections: {connections},"
        f" threads: {before} → {threads(server.pid)}; memory +{memory.grown_mib:.0f} MiB"
    )
    for found, took_s in rounds:
        # On a machine that takes so long for them, the last are told to come again.
        assert set(found) == {200} or (set(found) == {200, 503} and took_s >= MOST_WAIT_S)
    # Those of pages and of the API, of control events, and of who asks how the service is doing.
    assert connections <= PAGES + API_THREADS + 2
    assert threads(server.pid) <= before + PAGES
    assert memory.grown_mib <= GROWN_MIB


def timed_burst(server: Process, path: str) -> tuple[Counter[int], float]:
    began_at = time.monotonic()
    return asyncio.run(burst(server, path, AT_ONCE, rounds=1)), time.monotonic() - began_at


@pytest.mark.row("37", "503 with Retry-After")
def test_requests_beyond_the_queue_are_asked_to_retry(server: Process, path: str, tell: Tell) -> None:
    at_once = MOST_WAITING + PAGES + 100
    statuses, others = asyncio.run(while_bursting(server, path, at_once))
    tell(f"{at_once} simultaneous requests: {dict(statuses)}; meanwhile {others}")
    assert set(statuses) == {200, 503}
    assert others == {"/healthz": 200, "/readyz": 200, "/api/symbols": 401}


async def while_bursting(server: Process, path: str, at_once: int) -> tuple[Counter[int], dict[str, int]]:
    """What others are answered before the last page of the burst has come."""
    pages = asyncio.create_task(burst(server, path, at_once, rounds=1))
    others: dict[str, int] = {}
    async with httpx.AsyncClient(base_url=server.url, timeout=PATIENCE_S) as client:
        for other in ("/healthz", "/readyz", "/api/symbols"):
            status = (await client.get(other)).status_code
            others[other] = status if not pages.done() else 0
    return await pages, others


@pytest.mark.row(
    "37", "during a burst of pages, no quote or tick waits longer than a third of the median page"
)
def test_quotes_and_streams_do_not_wait_for_slow_pages(
    service: StreamService, server: Process, path: str, tell: Tell
) -> None:
    key = service.make_key(requests_per_minute=10**9)
    subscribe = {"action": "subscribe", "symbols": [SYMBOL], "api_key": key, "features": ["seq"]}
    with (
        Flow(service, TICKS_A_SECOND) as flow,
        listening(server.port, "/ws/market", subscribe, LISTENERS) as meter,
    ):
        calm_ms = quote_for(BESIDE_S / 2, server, key)
        before = meter.take()

        def beside_pages() -> BesidePages:
            meter.take()
            with asking(server.url + path, AT_ONCE, BESIDE_S) as pages:
                quotes_ms = quote_for(BESIDE_S / 2, server, key)
                during = meter.take()
            return BesidePages(pages.answered, pages.median_ms, quotes_ms, during)

        trials = tried(beside_pages)
        flow.stop()
    last = trials[-1]
    tell(f"{last.pages} pages, {AT_ONCE} at a time: median {last.half_ms:.0f} ms")
    tell(
        f"{len(last.quotes_ms)} quotes meanwhile: p99 {percentile(calm_ms, 0.99):.0f} →"
        f" {percentile(last.quotes_ms, 0.99):.0f} ms, slowest {max(last.quotes_ms):.0f} ms"
    )
    tell(f"p99 of ticks {before.p99_ms:.0f} → {last.during.p99_ms:.0f} ms; missed: {last.during.missed}")
    assert last.is_unharmed
    assert [(each.during.missed, each.during.ended) for each in trials] == [(0, 0)] * len(trials)


class BesidePages(NamedTuple):
    """What quotes and ticks took, and half of the pages."""

    pages: int
    half_ms: float
    quotes_ms: list[float]
    during: Heard

    @property
    def is_unharmed(self) -> bool:
        return max(*self.quotes_ms, self.during.most_ms) < self.half_ms / 3


def quote_for(seconds: float, server: Process, key: str) -> list[float]:
    """How many milliseconds each took."""
    took_ms: list[float] = []
    ends_at = time.monotonic() + seconds
    while time.monotonic() < ends_at:
        began_at = time.perf_counter()
        assert server.ask(f"/api/market/{SYMBOL}/quote", key).status_code == 200
        took_ms.append((time.perf_counter() - began_at) * 1000)
        time.sleep(0.005)
    return took_ms


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
def test_slow_clients_occupy_no_page_thread(server: Process, path: str) -> None:
    """More of them than threads: an unfinished body, and a big file that nobody reads."""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n"
    big = f"GET {BIG_FILE} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    slow = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(4 * PAGES)]
    try:
        for number, client in enumerate(slow):
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.sendall((head if number % 2 else big).encode())
        assert server.ask(path).status_code == 200
    finally:
        for client in slow:
            client.close()
