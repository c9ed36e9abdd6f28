"""uvicorn under `serve` and daphne under `runserver`: both serve it all. Ctrl-C at a terminal goes to `serve
--workers` and to each of its workers, whatever they are doing."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.conf import settings
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
from websockets.sync.connection import Connection

from tests.contract.streams.client import next_frame
from tests.databases import prepared
from tests.patience import PATIENCE_S, wait_until
from tests.programs.commands import manage
from tests.programs.running import Serve, environment, interruptible
from tests.programs.services import free_port
from tests.reliability.services.processes import Process
from tests.reliability.services.supervised import Supervised

pytestmark = pytest.mark.served

PATHS = {
    "/healthz": (200, "application/json"),
    "/readyz": (200, "application/json"),
    "/metrics": (200, "text/plain"),
    "/openapi.json": (200, "application/json"),
    "/asyncapi.json": (200, "application/json"),
    "/docs/api": (200, "text/html"),
    "/docs/streams": (200, "text/html"),
    "/api/symbols": (200, "application/json"),
    "/api/symbols/": (200, "application/json"),
    "/api/market/EURUSD/quote": (503, "application/json"),
    "/api/session": (200, "application/json"),
    "/api/limits": (200, "application/json"),
    "/api/nothing": (404, "application/json"),
    "/nothing": (404, "application/json"),
    "/accounts/login/": (200, "text/html"),
    "/settings/keys": (302, "text/html"),
    "/admin/": (302, "text/html"),
    "/static/tickwire.css": (200, "text/css"),
    "/static/unfold/css/styles.css": (200, "text/css"),
}
PREPARE = """
from django.core.management import call_command
call_command("migrate", verbosity=0)
call_command("load_instruments", verbosity=0)
call_command("issue_key", "alice", "--tier", "premium")
call_command("issue_ingest_key", "desk")
"""


class Running:
    def __init__(self, server: Serve, key: str, ingest_key: str) -> None:
        self.server, self.key, self.ingest_key = server, key, ingest_key


@pytest.fixture(scope="module", params=["serve", "runserver"])
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    var_dir: Path = tmp_path_factory.mktemp(request.param) / "var"
    keys = manage(var_dir, "shell", "-v", "0", "-c", PREPARE, DEMO="0").stdout.split()
    with Serve(var_dir, command=request.param, DEMO="0") as server:
        yield Running(server, *keys)


def test_each_path_is_served(running: Running) -> None:
    headers = {"X-API-Key": running.key, "Authorization": f"Bearer {settings.METRICS_TOKEN}"}
    with httpx.Client(base_url=running.server.url, headers=headers, timeout=PATIENCE_S) as client:
        for path, (status, content_type) in PATHS.items():
            response = client.get(path)
            assert (response.status_code, path) == (status, path)
            assert response.headers["Content-Type"].startswith(content_type), path
        response = client.head("/api/symbols")
    assert (response.status_code, response.content) == (200, b"")
    assert int(response.headers["Content-Length"]) > 100


@contextmanager
def stream(running: Running, path: str, **message: str) -> Iterator[tuple[Connection, Any]]:
    """A socket, and what the service answers to its first message."""
    with connect(
        f"ws://127.0.0.1:{running.server.port}{path}", compression=None, open_timeout=PATIENCE_S
    ) as socket:
        socket.send(json.dumps({"action": "subscribe", "symbols": ["BTCUSD"], **message}))
        yield socket, json.loads(socket.recv(PATIENCE_S))


def push_ticks(running: Running, count: int) -> None:
    """Trades: of those both streams tell."""
    prices = [{"bid": 60_000 + number, "ask": 60_001 + number} for number in range(count)]
    ticks = [{"symbol": "BTCUSD", **price, "side": "buy", "volume": 0.5} for price in prices]
    headers = {"X-Ingest-Key": running.ingest_key}
    url = f"{running.server.url}/ingest/ticks"
    answer = httpx.post(url, json={"ticks": ticks}, headers=headers, timeout=PATIENCE_S)
    assert answer.json()["accepted"] == count


def hear_until_closed(socket: Connection) -> None:
    with suppress(ConnectionClosed):
        while True:
            socket.recv(PATIENCE_S)


@pytest.mark.parametrize("path", ["/ws/market", "/ws/orderflow"])
def test_stream_is_served(running: Running, path: str) -> None:
    with stream(running, path, api_key=running.key) as (socket, reply):
        assert (reply["type"], reply["symbols"]) == ("subscribed", ["BTCUSD"])
        push_ticks(running, 300)
        heard = [next_frame(socket)["symbol"] for _ in range(300)]
    assert heard == ["BTCUSD"] * 300


def test_stream_ends_at_a_message_that_is_too_big(running: Running) -> None:
    with stream(running, "/ws/market", api_key=running.key) as (socket, _):
        socket.send(" " * (16 * 1024 + 1))
        hear_until_closed(socket)
    # daphne itself takes it in, and cannot close with 1009.
    assert socket.close_code == (1009 if running.server.command == "serve" else 4400)


def test_it_ends_without_a_traceback(running: Running) -> None:
    running.server.stop()

    assert "Traceback" not in running.server.output


WORKERS = "2"
CAUGHT = re.compile(r"^SigCgt:\s+([0-9a-f]+)$", re.MULTILINE)


def catches_ctrl_c(pid: int) -> bool:
    """Python does from its first moments on; before, the signal ends it in silence."""
    found = CAUGHT.search(Path(f"/proc/{pid}/status").read_text())
    return found is not None and bool(int(found[1], 16) & 1 << signal.SIGINT - 1)


def test_ctrl_c_while_workers_start_ends_them_without_a_traceback(own_redis: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'x.sqlite3'}"
    prepared.copy_sqlite(tmp_path / "x.sqlite3")
    port, log = free_port(), tmp_path / "said"
    command = [sys.executable, "manage.py", "serve", "--port", str(port), "--workers", WORKERS]
    names = environment(tmp_path, DEMO="0", DATABASE_URL=url, REDIS_URL=own_redis)
    with log.open("wb") as out, interruptible():
        process = subprocess.Popen(command, env=names, stdout=out, stderr=out, start_new_session=True)
    try:
        workers = Supervised(process, Process(port, process.pid, log))
        wait_until(lambda: len(workers.workers) == int(WORKERS))
        wait_until(lambda: all(catches_ctrl_c(pid) for pid in workers.workers))
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0
    finally:
        process.kill()
        process.wait()
    assert "Traceback" not in log.read_text()
