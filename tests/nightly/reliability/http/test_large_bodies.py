"""Row 45: how much of a body that nobody asked for is read, and what it costs in memory."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.reliability.clients.measures import Memory
from tests.reliability.fixtures import Tell
from tests.reliability.http.test_large_bodies import KIB, PATHS, SIZE, in_chunks, plain, send, service
from tests.reliability.services.stream_services import StreamService

MOST_READ = 1_000_000
pytestmark = pytest.mark.usefixtures("rows")
__all__ = ["service"]


def bytes_read(pid: int) -> int:
    """By system calls, of files and sockets alike."""
    said = Path(f"/proc/{pid}/io").read_text()
    return int(re.search(r"rchar: (\d+)", said)[1])  # type: ignore[index]


@pytest.mark.row("45", "at most 1 MB read in all")
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("is_chunked", [False, True], ids=["of 100 MB", "endless"])
def test_a_large_body_costs_nothing(
    service: StreamService,  # noqa: F811 - the fixture
    path: str,
    is_chunked: bool,
    tell: Tell,
) -> None:
    server = service.servers[0]
    memory, reads = Memory(server.pid), list[int]()
    # The service reads a large file of its own now and then, but not twice in a row.
    for _ in range(2):
        before = bytes_read(server.pid)
        if is_chunked:
            status, *_ = send(server.port, path, in_chunks(SIZE), "Transfer-Encoding: chunked")
        else:
            status, *_ = send(server.port, path, plain(SIZE), f"Content-Length: {SIZE}")
        memory.look()
        reads.append(bytes_read(server.pid) - before)
    tell(f"{path}: {status}, {min(reads) / KIB:.0f} KiB read, RSS +{memory.grown_mib:.1f} MiB")
    assert min(reads) <= MOST_READ
