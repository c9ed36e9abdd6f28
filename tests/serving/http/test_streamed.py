"""Answers whose body is made while it is sent."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress
from typing import Any

import pytest

from core.contract.answers import Answer
from serving.api_handler import send_response
from tests.patience import wait_until

from .serving import HOST, App, Serving, hear, serving, statuses

CHUNK = b"x" * 65_536
ENDLESS = 100_000
LAST_CHUNK = b"0\r\n\r\n"


class Streaming(App):
    """/small is three chunks, /breaks fails after the first, and /endless goes on for six gigabytes."""

    def __init__(self) -> None:
        super().__init__()
        self.made = 0
        self.ended: list[str] = []

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        answer = Answer(b"", media_type="text/csv", streamed=self.chunks(scope["path"]))
        await send_response(answer.as_response(scope["method"], {}), receive, send)
        self.ended.append(scope["path"])

    async def chunks(self, path: str) -> AsyncGenerator[bytes, None]:
        try:
            for number in range(ENDLESS if path == "/endless" else 3):
                if path == "/breaks" and number:
                    raise RuntimeError("the database went away")
                self.made += 1
                yield CHUNK if path == "/endless" else b"part"
        finally:
            self.ended.append(f"{path} closed")


@pytest.fixture
def server() -> Iterator[tuple[Serving, Streaming]]:
    app = Streaming()
    with serving({}, app) as running:
        yield running, app


def ask(server: Serving, path: str, method: str = "GET") -> bytes:
    with server.connect() as client:
        client.sendall(f"{method} {path} HTTP/1.1\r\nConnection: close\r\n".encode() + HOST + b"\r\n")
        return hear(client)


def test_chunks_come_whole_with_their_type(server: tuple[Serving, Streaming]) -> None:
    heard = ask(server[0], "/small")

    assert statuses(heard) == [200]
    assert b"content-type: text/csv" in heard
    assert heard.count(b"4\r\npart\r\n") == 3
    assert heard.endswith(LAST_CHUNK)


def test_head_makes_nothing(server: tuple[Serving, Streaming]) -> None:
    heard = ask(server[0], "/small", "HEAD")

    assert statuses(heard) == [200]
    assert b"part" not in heard
    assert server[1].made == 0


def test_what_fails_in_the_middle_has_no_end(
    server: tuple[Serving, Streaming], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.CRITICAL):
        heard = ask(server[0], "/breaks")

    assert statuses(heard) == [200]
    assert b"part" in heard
    assert not heard.endswith(LAST_CHUNK)


def test_nothing_is_made_for_who_has_left(server: tuple[Serving, Streaming]) -> None:
    running, app = server
    with running.connect() as client, suppress(ConnectionError):
        client.sendall(b"GET /endless HTTP/1.1\r\n" + HOST + b"\r\n")
        client.recv(65_536)

    wait_until(lambda: app.ended == ["/endless closed", "/endless"])
    assert app.made < ENDLESS


def test_nothing_is_made_ahead_of_who_does_not_read(server: tuple[Serving, Streaming]) -> None:
    running, app = server
    with running.connect() as client:
        client.sendall(b"GET /endless HTTP/1.1\r\n" + HOST + b"\r\n")
        client.recv(65_536)
        waiting = -1
        while waiting != app.made:
            waiting = app.made
            ask(running, "/small", "HEAD")
        assert app.made * len(CHUNK) < 64 << 20
