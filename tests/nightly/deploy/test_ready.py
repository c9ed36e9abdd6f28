"""The health check of the image."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tests.programs.services import free_port
from tests.reliability.services.processes import ROOT


@contextmanager
def answering(status: int) -> Iterator[str]:
    """The port of a service whose /readyz answers this."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/readyz" else 404)
            self.end_headers()
            self.wfile.write(b"its reasons")

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield str(server.server_port)
        finally:
            server.shutdown()
            thread.join()


def is_healthy(*arguments: str, **environment: str) -> bool:
    command = [sys.executable, str(ROOT / "deploy/ready.py"), *arguments]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.stderr == ""
    assert ran.stdout in ("", "its reasons")
    return ran.returncode == 0


@pytest.fixture(scope="module")
def ready() -> Iterator[str]:
    with answering(200) as port:
        yield port


@pytest.fixture(scope="module")
def unready() -> Iterator[str]:
    with answering(503) as port:
        yield port


def test_port_of_all_workers_speaks_and_not_that_of_any(ready: str, unready: str) -> None:
    assert not is_healthy(METRICS_PORT=unready, PORT=ready)
    assert is_healthy(METRICS_PORT=ready, PORT=unready)


def test_service_without_a_port_for_figures_is_asked_where_it_serves(ready: str, unready: str) -> None:
    for given in ({}, {"METRICS_PORT": ""}, {"METRICS_PORT": "0"}, {"METRICS_PORT": str(free_port())}):
        assert is_healthy(PORT=ready, **given)
        assert not is_healthy(PORT=unready, **given)


def test_port_that_is_named_counts_alone(ready: str, unready: str) -> None:
    assert is_healthy(ready, METRICS_PORT=unready, PORT=unready)
    assert not is_healthy(str(free_port()), METRICS_PORT=ready, PORT=ready)
