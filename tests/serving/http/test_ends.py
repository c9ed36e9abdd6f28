"""Clients that go away in the middle of a body, what comes behind the end of one, and connections whose
server ends."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import suppress

import pytest

from serving.http.protocol import MOST_UNHEARD
from tests.patience import PATIENCE_S, wait_until

from .serving import HOST, Serving, hear, serving, statuses

GET = b"GET / HTTP/1.1\r\n" + HOST
LAST = b"GET / HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n"
POST = b"POST / HTTP/1.1\r\nContent-Length: 10\r\n" + HOST + b"\r\nx"
UPGRADE = (
    b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
# The application answers these before their bodies have come; the second may have a long one.
CHUNKED = b"POST /unread HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + HOST + b"\r\n1\r\nx\r\n"
IMPORT = CHUNKED.replace(b"/unread", b"/admin/unread/import/")


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    with serving(head_s=PATIENCE_S, idle_s=100 * PATIENCE_S, look_every_s=0.05) as running:
        yield running


def test_who_goes_away_in_the_middle_of_a_body_leaves_no_line(
    server: Serving, caplog: pytest.LogCaptureFixture
) -> None:
    gone = server.app.disconnected
    with server.connect() as client:
        client.sendall(POST)
        wait_until(lambda: server.open_connections)

    wait_until(lambda: server.app.disconnected > gone and not server.open_connections)
    # What the server had still to do about it is done before it answers the next one.
    assert statuses(server.converse(LAST)) == [200]
    assert [record.message for record in caplog.records if record.levelno > logging.INFO] == []


@pytest.mark.parametrize(("head", "status"), [(b"GET / HTTP/1.1\r\nX: ", 408), (LAST, 200)])
def test_a_head_behind_a_body_has_as_long_as_any(server: Serving, head: bytes, status: int) -> None:
    with server.connect() as client:
        client.sendall(CHUNKED)
        assert statuses(client.recv(65_536)) == [200]
        rest = b"0\r\n\r\n" + head
        with server.all_read(len(rest)):
            client.sendall(rest)
        server.pass_time(1.1 * PATIENCE_S)
        assert statuses(hear(client)) == [status]


@pytest.mark.parametrize(("size", "answers"), [(MOST_UNHEARD - 1, [200]), (MOST_UNHEARD, [])])
def test_so_much_of_a_body_is_read_that_nobody_wants(server: Serving, size: int, answers: list[int]) -> None:
    with server.connect() as client:
        client.sendall(IMPORT)
        assert statuses(client.recv(65_536)) == [200]
        with suppress(ConnectionError):
            client.sendall(b"%x\r\n" % size + b"x" * size + b"\r\n0\r\n\r\n" + LAST)
        assert statuses(hear(client)) == answers


@pytest.mark.served
@pytest.mark.parametrize(
    ("rest", "status", "says"),
    [(b"\r\n", 200, b"Connection: close"), (UPGRADE, 503, b"Connect again at once.")],
)
def test_head_that_had_begun_when_the_server_stops_is_answered(rest: bytes, status: int, says: bytes) -> None:
    with serving() as running, running.connect() as waiting, running.connect() as begun:
        begun.sendall(GET)
        waiting.sendall(GET + b"\r\n")
        assert statuses(waiting.recv(1 << 16)) == [200]
        running.begin_to_stop()
        assert hear(waiting) == b""
        begun.sendall(rest)
        heard = hear(begun)
    assert statuses(heard) == [status]
    assert says.lower() in heard.lower()
