"""Row 45: how much of a body that nobody asked for is read, and what it costs in memory. That it is refused
before it is read, and who may send more, tests/serving/http/test_bodies.py and tests/pages show."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S
from tests.reliability.clients.measures import Memory
from tests.reliability.fixtures import Tell
from tests.reliability.services.processes import Installation, Process

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
