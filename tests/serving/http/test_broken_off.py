"""Clients that go away in the middle of a body, and what comes behind the end of one."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tests.patience import PATIENCE_S, wait_until

from .serving import HOST, Serving, hear, serving, statuses

POST = b"POST / HTTP/1.1\r\nContent-Length: 10\r\n" + HOST + b"\r\nx"

# The application answers this one before its body has come.
CHUNKED = b"POST /unread HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + HOST + b"\r\n1\r\nx\r\n"


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
    with server.connect() as another:
        another.sendall(b"GET / HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n")
        assert statuses(hear(another)) == [200]
    assert [record.message for record in caplog.records if record.levelno > logging.INFO] == []


def test_a_head_that_begins_behind_a_body_has_as_long_as_any(server: Serving) -> None:
    with server.connect() as client:
        client.sendall(CHUNKED)
        assert statuses(client.recv(65_536)) == [200]
        rest = b"0\r\n\r\nGET / HTTP/1.1\r\nX: "
        with server.all_read(len(rest)):
            client.sendall(rest)
        server.pass_time(1.1 * PATIENCE_S)
        assert statuses(hear(client)) == [408]


def test_one_that_has_ended_there_is_answered(server: Serving) -> None:
    with server.connect() as client:
        client.sendall(CHUNKED)
        assert statuses(client.recv(65_536)) == [200]
        client.sendall(b"0\r\n\r\nGET / HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n")
        assert statuses(hear(client)) == [200]
