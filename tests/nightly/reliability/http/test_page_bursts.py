"""Bursts of pages: few threads and connections make them, and quotes do not wait for them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.factories import make_account, make_signal, make_tiers, make_user
from tests.nightly.reliability.clients.meters import Heard, listening, tried
from tests.nightly.reliability.clients.wrk import asking
from tests.reliability.clients.measures import Memory, descriptors, percentile
from tests.reliability.fixtures import Tell
from tests.reliability.http.test_page_bursts import API_THREADS, NAME, PAGES, PATH, threads
from tests.reliability.services.processes import Installation, Process
from tests.reliability.services.stream_services import Flow, StreamService, streaming

AT_ONCE, WARM_S, BURST_S = 60, 3.0, 15.0
SYMBOL, TICKS_A_SECOND, LISTENERS, BESIDE_S = "BESIDE", 40, 10, 3.0
GROWN_MIB = 40
# Without a cookie they would all get the page that was made for the first.
NOT_KEPT = "Cookie: theme=dark"


@pytest.fixture(scope="module")
def service(embedded_for_module: Installation) -> Iterator[StreamService]:
    with embedded_for_module.orm():
        make_tiers()
        make_signal(user=make_account(make_user(NAME)).user)
    sizes = {"PAGE_THREADS": str(PAGES), "API_THREADS": str(API_THREADS)}
    with streaming(embedded_for_module, 1, [SYMBOL], **sizes) as running:
        yield running


@pytest.fixture
def server(service: StreamService) -> Process:
    return service.servers[0]


@pytest.mark.row("37", "connections and threads bounded, memory flat, no 500")
def test_bursts_of_pages_add_neither_connections_nor_threads_nor_memory(server: Process, tell: Tell) -> None:
    with asking(server.url + PATH, AT_ONCE, WARM_S, NOT_KEPT):
        pass
    memory, before = Memory(server.pid), threads(server.pid)
    with asking(server.url + PATH, AT_ONCE, BURST_S, NOT_KEPT) as asked:
        pass
    memory.look()
    # On SQLite, they are open files.
    connections = sum(each.endswith("embedded.sqlite3") for each in descriptors(server.pid))
    tell(
        f"{asked.answered} pages, {AT_ONCE} at a time, {asked.refused} refused; connections:"
        f" {connections}, threads: {before} → {threads(server.pid)};"
        f" memory +{memory.grown_mib:.0f} MiB"
    )
    assert asked.answered > 0
    assert "Traceback" not in server.log.read_text()
    # Those of pages and of the API, of control events, and of who asks how the service is doing.
    assert connections <= PAGES + API_THREADS + 2
    assert threads(server.pid) <= before + PAGES
    assert memory.grown_mib <= GROWN_MIB


class BesidePages(NamedTuple):
    """What quotes and ticks took, and half of the pages."""

    pages: int
    half_ms: float
    quotes_ms: list[float]
    during: Heard

    @property
    def is_unharmed(self) -> bool:
        return max(*self.quotes_ms, self.during.most_ms) < self.half_ms / 3


@pytest.mark.row(
    "37", "during a burst of pages, no quote or tick waits longer than a third of the median page"
)
def test_quotes_and_streams_do_not_wait_for_slow_pages(
    service: StreamService, server: Process, tell: Tell
) -> None:
    key = service.make_key(requests_per_minute=10**9)
    subscribe = {"action": "subscribe", "symbols": [SYMBOL], "api_key": key, "features": ["seq"]}
    with Flow(service, TICKS_A_SECOND), listening(server.port, "/ws/market", subscribe, LISTENERS) as meter:

        def beside_pages() -> BesidePages:
            meter.take()
            with asking(server.url + PATH, AT_ONCE, BESIDE_S, NOT_KEPT) as pages:
                quotes_ms = quote_for(BESIDE_S / 2, server, key)
                during = meter.take()
            return BesidePages(pages.answered, pages.median_ms, quotes_ms, during)

        trials = tried(beside_pages)
    last = trials[-1]
    tell(f"{last.pages} pages, {AT_ONCE} at a time: median {last.half_ms:.0f} ms")
    tell(
        f"{len(last.quotes_ms)} quotes meanwhile: p99 {percentile(last.quotes_ms, 0.99):.0f} ms,"
        f" slowest {max(last.quotes_ms):.0f} ms; p99 of ticks {last.during.p99_ms:.0f} ms"
    )
    assert last.is_unharmed
    assert [(each.during.missed, each.during.ended) for each in trials] == [(0, 0)] * len(trials)


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
