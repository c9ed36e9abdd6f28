"""Row 45: bodies that nobody asked for are refused before they are read, and their sender sees it."""

from __future__ import annotations

import json
import re
import socket
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from django.conf import settings
from pytest_django import DjangoDbBlocker

from tests.factories import make_user
from tests.patience import PATIENCE_S
from tests.reliability.clients.measures import Memory
from tests.reliability.clients.person import log_in
from tests.reliability.fixtures import Tell, longer
from tests.reliability.services.processes import Installation
from tests.reliability.services.stream_services import StreamService, streaming

KIB = 1024
SIZE, MOST_READ = 100_000_000, 1_000_000
IMPORT = "/admin/instruments/instrument/import/"
PAGE, API = "/accounts/login/", "/api/symbols"
PATHS = longer((PAGE, API), (PAGE, API, "/healthz", "/nothing", "/ingest/ticks", IMPORT))
# Whoever need not read a body to answer, answers: that the key is missing, for one.
ENDLESS = dict.fromkeys((PAGE, "/nothing", IMPORT), 413) | {API: 401, "/ingest/ticks": 401, "/healthz": 405}
pytestmark = pytest.mark.usefixtures("rows")


@pytest.fixture(scope="module")
def service(embedded_for_module: Installation, django_db_blocker: DjangoDbBlocker) -> Iterator[StreamService]:
    with django_db_blocker.unblock(), streaming(embedded_for_module, 1, ["PUSHED"]) as running:
        yield running


def bytes_read(pid: int) -> int:
    """By system calls, of files and sockets alike."""
    said = Path(f"/proc/{pid}/io").read_text()
    return int(re.search(r"rchar: (\d+)", said)[1])  # type: ignore[index]


def temporary_files(pid: int) -> list[str]:
    """Open and without a name any more, as those of Python are."""
    links = []
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            links.append(str(descriptor.readlink()))
    return [link for link in links if link.startswith(tempfile.gettempdir()) and link.endswith("(deleted)")]


def send(port: int, path: str, body: Iterator[bytes], *lines: str) -> tuple[int, bytes]:
    """The status and body of the answer, to a client that sends all it can before it listens."""
    head = "\r\n".join([f"POST {path} HTTP/1.1", "Host: 127.0.0.1", *lines, "", ""])
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as client:
        with suppress(ConnectionError):
            client.sendall(head.encode())
            for piece in body:
                client.sendall(piece)
        heard = bytearray()
        with suppress(ConnectionError):
            while data := client.recv(65536):
                heard += data
    return int(heard.split()[1]), bytes(heard.partition(b"\r\n\r\n")[2])


def plain(size: int) -> Iterator[bytes]:
    for _ in range(size // 50_000):
        yield b"x" * 50_000


def in_chunks(size: int) -> Iterator[bytes]:
    for piece in plain(size):
        yield b"%x\r\n%s\r\n" % (len(piece), piece)


@pytest.mark.row("45", "answered with 413; at most 1 MB read in all; no temporary file")
@pytest.mark.parametrize("path", PATHS)
def test_a_body_of_100_megabytes_is_refused_before_it_is_read(
    service: StreamService, path: str, tell: Tell
) -> None:
    server = service.servers[0]
    server.ask("/healthz")
    memory, before = Memory(server.pid), bytes_read(server.pid)
    status, body = send(server.port, path, plain(SIZE), f"Content-Length: {SIZE}")
    memory.look()
    read = bytes_read(server.pid) - before
    tell(f"{path}: {status}, {read / KIB:.0f} KiB read, RSS +{memory.grown_mib:.1f} MiB")
    assert status == 413
    assert json.loads(body)["error"]["code"] == "too_large"
    # Files and what else the service reads are in it: how much of the body it is, tests/serving/http shows.
    assert read <= MOST_READ
    assert temporary_files(server.pid) == []


@pytest.mark.row(
    "45",
    "answered with 413, or with 401 or 405 where the body need not be read; at most 1 MB "
    "read; no temporary file",
)
@pytest.mark.parametrize("path", PATHS)
def test_endless_chunked_bodies_are_refused_at_the_limit(
    service: StreamService, path: str, tell: Tell
) -> None:
    server = service.servers[0]
    before = bytes_read(server.pid)
    status, _ = send(server.port, path, in_chunks(SIZE), "Transfer-Encoding: chunked")
    read = bytes_read(server.pid) - before
    tell(f"{path}: {status}, {read / KIB:.0f} KiB read")
    assert status == ENDLESS[path]
    assert read <= MOST_READ
    assert temporary_files(server.pid) == []


@pytest.mark.row("45", "clients that may send large bodies can do so")
def test_a_source_with_a_key_may_send_a_mebibyte_of_ticks(service: StreamService) -> None:
    server, key = service.servers[0], service.headers["X-Ingest-Key"]
    text = json.dumps({"ticks": service.make_ticks(["PUSHED"])}).encode()
    most, beyond = 1024 * KIB, 1024 * KIB + 1

    def push(size: int, sent_key: str) -> int:
        padded = iter([text + b" " * (size - len(text))])
        lines = f"Content-Length: {size}", "Connection: close", f"X-Ingest-Key: {sent_key}"
        return send(server.port, "/ingest/ticks", padded, *lines)[0]

    assert push(most, key) == 200
    assert push(beyond, key) == 413
    assert push(most, "tw_ingest_none") == 401


@pytest.mark.row("45", "clients that may send large bodies can do so")
def test_only_logged_in_staff_may_import_a_large_file(service: StreamService) -> None:
    server = service.servers[0]
    with service.installation.orm():
        sessions = {name: log_in(make_user(name, is_staff=name == "staff")) for name in ("staff", "customer")}

    def status(cookie: str) -> int:
        session = f"Cookie: {settings.SESSION_COOKIE_NAME}={cookie}"
        lines = f"Content-Length: {4 * 50_000}", session, "Connection: close"
        return send(server.port, IMPORT, plain(4 * 50_000), *lines)[0]

    assert status("") == 413
    assert status("unknown") == 413
    assert status(sessions["customer"]) == 413
    # It got as far as Django, which asks for the form's token.
    assert status(sessions["staff"]) == 403
