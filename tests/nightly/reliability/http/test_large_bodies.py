"""Rows 45 and 73: how much of a body that nobody asked for is read, and what that and 500 bars, as often as a
tier allows, cost in memory. That it is refused before it is read, the tests of serving and of pages show."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from statistics import median

import pytest

from tests.factories import make_instrument
from tests.market.importing.importing import walk, write
from tests.patience import PATIENCE_S, wait_until
from tests.reliability.clients.measures import Memory, percentile
from tests.reliability.fixtures import Tell
from tests.reliability.services.processes import Installation, Process
from tests.reliability.services.stream_services import streaming

SIZE, PIECE, MOST_READ = 100_000_000, b"x" * 50_000, 1_000_000
IMPORT = "/admin/instruments/instrument/import/"
PATHS = ("/accounts/login/", "/api/symbols", "/healthz", "/nothing", "/ingest/ticks", IMPORT)
# Whoever need not read a body to answer, answers: that the key is missing, for one.
UNREAD = {"/api/symbols": 401, "/ingest/ticks": 401, "/healthz": 405}


@pytest.fixture(scope="module")
def server(embedded_for_module: Installation) -> Iterator[Process]:
    with embedded_for_module.web_process() as running:
        yield running


def bytes_read(pid: int) -> int:
    """By system calls, of files and sockets alike."""
    said = Path(f"/proc/{pid}/io").read_text()
    return int(re.search(r"rchar: (\d+)", said)[1])  # type: ignore[index]


def status_of(port: int, path: str, *, is_chunked: bool) -> int:
    """For a client that sends all it can before it listens."""
    line = "Transfer-Encoding: chunked" if is_chunked else f"Content-Length: {SIZE}"
    piece = b"%x\r\n%s\r\n" % (len(PIECE), PIECE) if is_chunked else PIECE
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as client:
        with suppress(ConnectionError):
            client.sendall("\r\n".join([f"POST {path} HTTP/1.1", "Host: 127.0.0.1", line, "", ""]).encode())
            for _ in range(SIZE // len(PIECE)):
                client.sendall(piece)
        with suppress(ConnectionError):
            return int(client.recv(65536).split()[1])
    return 0


@pytest.mark.row("45", "refused, with at most 1 MB read in all")
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("is_chunked", [False, True], ids=["of 100 MB", "endless"])
def test_a_large_body_costs_nothing(server: Process, path: str, is_chunked: bool, tell: Tell) -> None:
    memory, reads = Memory(server.pid), list[int]()
    # The service reads a large file of its own now and then, but not twice in a row.
    for _ in range(2):
        before = bytes_read(server.pid)
        status = status_of(server.port, path, is_chunked=is_chunked)
        memory.look()
        reads.append(bytes_read(server.pid) - before)
    tell(f"{path}: {status}, {min(reads) / 1024:.0f} KiB read, RSS +{memory.grown_mib:.1f} MiB")
    assert status == (UNREAD.get(path, 413) if is_chunked else 413)
    assert min(reads) <= MOST_READ


P99_MS = 150
BARS, THREADS, EACH = 500, 4, 900
BARS_PATH = f"/api/market/EURUSD?timeframe=1m&bars={BARS}&closed_only=true"


@pytest.mark.row("73", "+50 MiB; p99 150 ms, or three times the middle one")
def test_large_answers_retain_no_memory(embedded: Installation, tmp_path: Path, tell: Tell) -> None:
    with embedded.orm():
        make_instrument("EURUSD")
    done = embedded.manage(
        "import_ticks", "EURUSD", write(tmp_path / "EURUSD.jsonl", walk("2026-10-05T00:00", 600))
    )
    assert done.returncode == 0, done.stderr
    with streaming(embedded, 1, ["OTHER"]) as service, ThreadPoolExecutor(THREADS) as threads:
        server, key = service.servers[0], service.make_key(requests_per_minute=1_000_000)

        def ask(number: int) -> float:
            began_at = time.perf_counter()
            answer = server.ask(BARS_PATH, key)
            assert (answer.status_code, len(answer.json()["ohlcv"])) == (200, BARS)
            return (time.perf_counter() - began_at) * 1000

        wait_until(lambda: server.ask(BARS_PATH, key).status_code == 200)
        list(threads.map(ask, range(THREADS * 10)))
        memory = Memory(server.pid)
        took_ms = list(threads.map(ask, range(THREADS * EACH)))
        memory.look()
    grown, middle_ms, p99_ms = f"+{memory.grown_mib:.1f} MiB", median(took_ms), percentile(took_ms, 0.99)
    tell(
        f"{len(took_ms)} answers of {BARS} bars: {grown}, p99 {p99_ms:.0f} ms, the middle {middle_ms:.0f} ms"
    )
    assert memory.grown_mib <= 50
    # On a slow machine all take longer; a stall is longer than the others.
    assert p99_ms <= max(P99_MS, 3 * middle_ms)
