"""How a server ends: nobody new is let in, what others see of it is put in order, then all are closed."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn

from serving.draining import draining
from serving.server import UVICORN_OPTIONS, Server, take_port
from tests.patience import PATIENCE_S, wait_until

from .http.serving import App, hear, statuses

REQUEST = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
Act = Callable[[], Awaitable[None]]


@pytest.fixture(autouse=True)
def _other_servers_go_on() -> Iterator[None]:
    before = draining.before_closing
    yield
    draining.before_closing, draining.is_on = before, False


@contextmanager
def serving(*acts: Act) -> Iterator[tuple[Server, int]]:
    draining.before_closing = acts
    options: dict[str, Any] = {"loop": "uvloop", "lifespan": "off", "log_config": None, "access_log": False}
    with take_port("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        server = Server(uvicorn.Config(App(), **UVICORN_OPTIONS | options), lambda: None)
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        wait_until(lambda: server.started)
        yield server, port
        server.should_exit = True
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def keep_connection(port: int) -> socket.socket:
    kept = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
    kept.sendall(REQUEST)
    assert statuses(kept.recv(1 << 16)) == [200]
    return kept


def test_what_others_see_is_put_in_order_while_connections_are_still_open_and_none_is_let_in() -> None:
    has_begun, may_end = threading.Event(), threading.Event()

    async def act() -> None:
        has_begun.set()
        assert await asyncio.to_thread(may_end.wait, PATIENCE_S)

    with serving(act) as (server, port), keep_connection(port) as kept:
        server.should_exit = True
        assert has_begun.wait(PATIENCE_S)
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S).close()
        kept.sendall(REQUEST)
        assert statuses(kept.recv(1 << 16)) == [200]
        may_end.set()
        assert hear(kept) == b""


def test_what_fails_or_hangs_before_the_end_keeps_no_server_from_ending(
    caplog: pytest.LogCaptureFixture,
) -> None:
    has_come = threading.Event()

    async def fail() -> None:
        raise ConnectionError("Redis is away")

    async def hang() -> None:
        await asyncio.sleep(PATIENCE_S)

    async def come() -> None:
        has_come.set()

    with serving(fail, hang, come) as (server, port), keep_connection(port) as kept:
        server.should_exit = True
        assert hear(kept) == b""
    assert has_come.is_set()
    assert "Redis is away" in caplog.text
