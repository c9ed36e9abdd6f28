"""Which requests the proxies send to another process when one is silent, as all are here but for checks."""

from __future__ import annotations

import ssl
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from .installation import HOST
from .proxies import PROGRAMS, Proxy, started

# More than any proxy waits for what is quick, and less than for what is not.
WITHIN_S = 15.0
QUICK = ("/api/quotes", "/api/market/EURUSD/history", "/", "/publishers")
PATIENT = (
    "/api/analysis/EURUSD",
    "/api/archive/ticks/EURUSD/2026-11-18.parquet",
    "/api/market/EURUSD/ticks",
    "/publishers/alice/bundle.zip",
    "/admin/",
)


Heard = Counter[tuple[str, str]]


class Silent(BaseHTTPRequestHandler):
    heard: Heard
    is_over: threading.Event

    def do_GET(self) -> None:
        if self.path != "/readyz":
            self.heard[self.command, self.path] += 1
            self.is_over.wait()
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_POST = do_GET  # noqa: N815 - the library names it

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(params=PROGRAMS)
def silent(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Proxy, Heard]]:
    heard, is_over = Heard(), threading.Event()
    handler = type("Handler", (Silent,), {"heard": heard, "is_over": is_over})
    with ExitStack() as running:
        servers = [running.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), handler)) for _ in range(2)]
        for server in servers:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            running.callback(server.shutdown)
        ports = [server.server_address[1] for server in servers]
        proxy = running.enter_context(started(request.param, tmp_path / "proxy", ports))
        running.callback(is_over.set)
        yield proxy, heard


def test_only_what_is_quick_and_changes_nothing_is_sent_to_another_process(
    silent: tuple[Proxy, Heard],
) -> None:
    proxy, heard = silent
    quick, posted = {("GET", path) for path in QUICK}, {("POST", path) for path in ("/ingest/ticks", *QUICK)}
    asked = [*quick, *posted, *(("GET", path) for path in PATIENT)]
    tls = ssl.create_default_context(cafile=str(proxy.certificate))

    def ask(method: str, path: str) -> int:
        try:
            return client.request(method, f"https://{HOST}:{proxy.https}{path}").status_code
        except httpx.TimeoutException:
            return 0

    with httpx.Client(verify=tls, timeout=WITHIN_S) as client, ThreadPoolExecutor(len(asked)) as threads:
        statuses = dict(zip(asked, threads.map(lambda each: ask(*each), asked), strict=True))

    assert {each for each, status in statuses.items() if status in (502, 503, 504)} == quick
    assert {each for each, count in heard.items() if count > 1} == quick
    assert set(heard) == set(asked)
