"""How a server ends: nobody new is let in, what others see of it is put in order, then all are closed."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn
from pytest_django.fixtures import Settings

from serving.draining import draining
from serving.server import UNREAD_MS, UVICORN_OPTIONS, Server, take_port
from tests.patience import PATIENCE_S, wait_until

from .http.serving import App, hear, statuses

REQUEST = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
Act = Callable[[], Awaitable[None]]
INTERRUPTED = """
import os, signal, uvicorn
from serving.server import UVICORN_OPTIONS, Server, take_port
from tests.serving.http.serving import App

signal.signal(signal.SIGINT, signal.default_int_handler)
options = {"loop": "uvloop", "lifespan": "off", "log_config": None} | UVICORN_OPTIONS
server = Server(uvicorn.Config(App(), **options), lambda: os.kill(os.getpid(), signal.SIGINT))
try:
    server.run([take_port("127.0.0.1", 0)])
except KeyboardInterrupt:
    print("It has ended.", flush=True)
signal.raise_signal(signal.SIGINT)
"""


@pytest.fixture(autouse=True)
def _other_servers_go_on() -> Iterator[None]:
    before = draining.before_closing
    yield
    draining.before_closing, draining.is_on = before, False


@contextmanager
def serving(*acts: Act, app: App | None = None) -> Iterator[tuple[Server, int]]:
    """With an application, that hears of the start and the end as well."""
    draining.before_closing = [*acts]
    lifespan = "off" if app is None else "on"
    options: dict[str, Any] = {
        "loop": "uvloop",
        "lifespan": lifespan,
        "log_config": None,
        "access_log": False,
    }
    with take_port("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        server = Server(uvicorn.Config(app or App(), **UVICORN_OPTIONS | options), lambda: None)
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


def is_listening(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S).close()
    except ConnectionRefusedError:
        return False
    return True


def test_what_others_see_is_put_in_order_while_connections_are_still_open_and_none_is_let_in() -> None:
    has_begun, may_end = threading.Event(), threading.Event()

    async def act() -> None:
        has_begun.set()
        assert await asyncio.to_thread(may_end.wait, PATIENCE_S)

    with serving(act) as (server, port), keep_connection(port) as kept:
        server.should_exit = True
        assert has_begun.wait(PATIENCE_S)
        assert not is_listening(port)
        kept.sendall(REQUEST)
        assert statuses(kept.recv(1 << 16)) == [200]
        may_end.set()
        assert hear(kept) == b""


def test_server_that_is_followed_lets_nobody_in_while_those_who_are_there_are_served(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serving.server.end_within", lambda seconds: None)
    settings.DRAIN_S = 10 * PATIENCE_S
    with serving() as (server, port), keep_connection(port) as kept:
        server.retire()
        wait_until(lambda: not is_listening(port))
        kept.sendall(REQUEST)
        assert statuses(kept.recv(1 << 16)) == [200]
        # Told again, it waits no longer for last comers.
        server.handle_exit(signal.SIGTERM, None)


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


def test_ctrl_c_again_ends_it_at_once_but_what_it_has_in_hand_is_put_away(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It would end these tests as well.
    monkeypatch.setattr("serving.server.end_within", lambda seconds: None)
    put_away = threading.Event()

    class Service(App):
        async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
            if scope["type"] != "lifespan":
                await super().__call__(scope, receive, send)
                return
            assert (await receive())["type"] == "lifespan.startup"
            await send({"type": "lifespan.startup.complete"})
            assert (await receive())["type"] == "lifespan.shutdown"
            put_away.set()
            await send({"type": "lifespan.shutdown.complete"})

    app = Service()
    with serving(app=app) as (server, port), keep_connection(port) as slow:
        slow.sendall(b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\nbegun")
        wait_until(lambda: len(app.requests) == 2)
        server.handle_exit(signal.SIGINT, None)
        wait_until(lambda: not is_listening(port))
        assert not put_away.is_set()
        server.handle_exit(signal.SIGINT, None)
        assert put_away.wait(PATIENCE_S)
    assert app.disconnected == 1
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []


@pytest.mark.served
def test_ctrl_c_again_once_it_has_ended_shows_no_traceback() -> None:
    names = os.environ | {"DJANGO_SETTINGS_MODULE": "config.settings"}
    program = [sys.executable, "-c", INTERRUPTED]
    ended = subprocess.run(program, env=names, capture_output=True, text=True, timeout=PATIENCE_S)
    assert (ended.stdout, ended.stderr) == ("It has ended.\n", "")
    assert ended.returncode == -signal.SIGINT


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="Linux has it")
def test_connection_whose_client_never_reads_is_ended_by_the_kernel() -> None:
    with take_port("127.0.0.1", 0) as listener:
        listener.listen()
        with socket.create_connection(listener.getsockname()), listener.accept()[0] as taken:
            assert taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == UNREAD_MS
