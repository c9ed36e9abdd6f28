"""Row 45: bodies that nobody asked for are refused before they are read, and their sender sees it."""

from __future__ import annotations

import json
import socket
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from django.conf import settings
from pytest_django import DjangoDbBlocker

from tests.factories import make_user
from tests.patience import PATIENCE_S
from tests.reliability.clients.person import log_in
from tests.reliability.fixtures import Tell
from tests.reliability.services.processes import Installation
from tests.reliability.services.stream_services import StreamService, streaming

KIB = 1024
SIZE = 100_000_000
# What fits into the kernel's buffers leaves a client, whoever reads it.
MOST_SENT = SIZE // 4
IMPORT = "/admin/instruments/instrument/import/"
PAGE, API = "/accounts/login/", "/api/symbols"
PATHS = (PAGE, API, "/healthz", "/nothing", "/ingest/ticks", IMPORT)
# Whoever need not read a body to answer, answers: that the key is missing, for one.
ENDLESS = dict.fromkeys((PAGE, "/nothing", IMPORT), 413) | {API: 401, "/ingest/ticks": 401, "/healthz": 405}
pytestmark = pytest.mark.usefixtures("rows")


@pytest.fixture(scope="module")
def service(embedded_for_module: Installation, django_db_blocker: DjangoDbBlocker) -> Iterator[StreamService]:
    # Who goes on sending is left after the product's own deadline.
    changes = {"DEADLINES_TIMES": "1"}
    with django_db_blocker.unblock(), streaming(embedded_for_module, 1, ["PUSHED"], **changes) as running:
        yield running


def temporary_files(pid: int) -> list[str]:
    """Open and without a name any more, as those of Python are."""
    links = []
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            links.append(str(descriptor.readlink()))
    return [link for link in links if link.startswith(tempfile.gettempdir()) and link.endswith("(deleted)")]


def send(port: int, path: str, body: Iterator[bytes], *lines: str) -> tuple[int, bytes, int]:
    """The status and body of the answer, to a client that sends all it can before it listens, and how much
    of its own body left it."""
    head = "\r\n".join([f"POST {path} HTTP/1.1", "Host: 127.0.0.1", *lines, "", ""])
    sent = 0
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as client:
        with suppress(ConnectionError):
            client.sendall(head.encode())
            for piece in body:
                client.sendall(piece)
                sent += len(piece)
        heard = bytearray()
        with suppress(ConnectionError):
            while data := client.recv(65536):
                heard += data
    return int(heard.split()[1]), bytes(heard.partition(b"\r\n\r\n")[2]), sent


def send_to_all(
    port: int, body: Callable[[], Iterator[bytes]], line: str
) -> dict[str, tuple[int, bytes, int]]:
    """Whatever is refused stays open for a while: all at once."""
    with ThreadPoolExecutor(len(PATHS)) as clients:
        asked = {path: clients.submit(send, port, path, body(), line) for path in PATHS}
        return {path: answer.result(PATIENCE_S) for path, answer in asked.items()}


def plain(size: int) -> Iterator[bytes]:
    for _ in range(size // 50_000):
        yield b"x" * 50_000


def in_chunks(size: int) -> Iterator[bytes]:
    for piece in plain(size):
        yield b"%x\r\n%s\r\n" % (len(piece), piece)


@pytest.mark.row("45", "answered with 413, most of it never sent; no temporary file")
def test_a_body_of_100_megabytes_is_refused_before_it_is_read(service: StreamService, tell: Tell) -> None:
    server = service.servers[0]
    answers = send_to_all(server.port, lambda: plain(SIZE), f"Content-Length: {SIZE}")
    most = max(sent for *_, sent in answers.values())
    tell(f"{len(PATHS)} paths, at most {most / 1e6:.0f} MB sent")
    for status, body, _ in answers.values():
        assert (status, json.loads(body)["error"]["code"]) == (413, "too_large")
    # How much of the body is read, tests/serving/http shows.
    assert most <= MOST_SENT
    assert temporary_files(server.pid) == []


@pytest.mark.row(
    "45", "answered with 413, or with 401 or 405 where the body need not be read; no temporary file"
)
def test_endless_chunked_bodies_are_refused_at_the_limit(service: StreamService, tell: Tell) -> None:
    server = service.servers[0]
    answers = send_to_all(server.port, lambda: in_chunks(SIZE), "Transfer-Encoding: chunked")
    statuses = {path: status for path, (status, *_) in answers.items()}
    most = max(sent for *_, sent in answers.values())
    tell(f"{statuses}, at most {most / 1e6:.0f} MB sent")
    assert statuses == ENDLESS
    assert most <= MOST_SENT
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
