"""A server that is about to end: what was sent to it is answered, and what is not answered was not taken.
Over Redis, with engines of their own, tests/reliability/restarts/test_rolling_traffic.py shows it."""

from __future__ import annotations

import itertools
import json
import socket as sockets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from core import clock
from tests.client import Server
from tests.factories import make_instrument
from tests.patience import PATIENCE_S, wait_until
from tests.serving.websocket.wires import TEXT, handshake, masked

from .conftest import make_ingest_key, make_tick


@pytest.fixture
def server(transactional_db: None) -> Iterator[Server]:
    with Server() as running:
        yield running


@contextmanager
def connected(server: Server) -> Iterator[ClientConnection]:
    headers = {"X-Ingest-Key": make_ingest_key()}
    url = f"ws://127.0.0.1:{server.port}/ws/ingest"
    made = connect(url, additional_headers=headers, compression=None, open_timeout=PATIENCE_S)
    try:
        assert heard(made)["type"] == "authenticated"
        yield made
    finally:
        made.close()


@pytest.fixture
def socket(server: Server) -> Iterator[ClientConnection]:
    with connected(server) as made:
        yield made


@contextmanager
def stopping(server: Server) -> Iterator[None]:
    """It waits for its clients, so they are listened to meanwhile."""
    thread = threading.Thread(target=server.stop, daemon=True)
    thread.start()
    yield
    thread.join(PATIENCE_S)


def heard(socket: ClientConnection) -> dict[str, Any]:
    frame: dict[str, Any] = json.loads(socket.recv(PATIENCE_S))
    return frame


def all_heard(socket: ClientConnection) -> list[dict[str, Any]]:
    frames = []
    try:
        while True:
            frames.append(heard(socket))
    except ConnectionClosed:
        return frames


def texts(symbol: str) -> Iterator[str]:
    """A tick each, whose number is that of its message."""
    since_ms = clock.now_ms() - 10_000
    for seq in itertools.count():
        tick = make_tick(symbol, seq=seq, time=min(since_ms + seq, clock.now_ms()))
        yield json.dumps({"id": seq, "ticks": [tick]})


def answered(frames: list[dict[str, Any]]) -> list[int]:
    return [frame["id"] for frame in frames if frame["type"] == "result" and frame["accepted"] == 1]


@pytest.mark.parametrize("sent", [0, 50])
def test_what_was_sent_is_answered_before_the_socket_closes_with_1012(
    server: Server, socket: ClientConnection, sent: int
) -> None:
    for text in itertools.islice(texts(make_instrument("PUSHEDLAST").symbol), sent):
        socket.send(text)
    with stopping(server):
        frames = all_heard(socket)
    assert [frame["code"] for frame in frames if frame["type"] == "notice"] == ["restarting"]
    assert answered(frames) == list(range(sent))
    assert socket.close_code == 1012


def test_who_goes_on_sending_is_closed_and_only_what_was_answered_is_taken(
    server: Server, socket: ClientConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("market.push.consumer.LAST_ANSWERS_S", 0.3)
    sent: list[str] = []
    symbol = make_instrument("PUSHEDON").symbol

    def send_on() -> None:
        """For longer than a server waits."""
        with suppress(ConnectionClosed):
            for text in texts(symbol):
                sent.append(text)
                socket.send(text)
                time.sleep(0.001)

    sending = threading.Thread(target=send_on, daemon=True)
    sending.start()
    first = heard(socket)
    with stopping(server):
        taken = answered([first, *all_heard(socket)])
    sending.join(PATIENCE_S)
    assert socket.close_code == 1012
    assert taken == list(range(len(taken)))
    verdicts = []
    with Server() as again, connected(again) as after:
        for text in sent[taken[-1] : taken[-1] + 2]:
            after.send(text)
            verdicts.append(heard(after)["accepted"])
    assert verdicts == [0, 1]


def test_who_never_reads_holds_the_server_up_no_longer(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("market.push.consumer.LAST_ANSWERS_S", 0.1)
    monkeypatch.setattr("market.push.consumer.UNREAD_S", 0.1)
    monkeypatch.setattr("serving.websocket.protocol.STALLED_LINGER_S", 0.1)
    message = masked(TEXT, b"[" + b'{"symbol":"NOPE"},' * 300 + b"0]")
    with sockets.socket() as deaf:
        deaf.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 4_096)
        with Server() as server:
            deaf.connect(("127.0.0.1", server.port))
            deaf.sendall(handshake(f"X-Ingest-Key: {make_ingest_key()}", path="/ws/ingest"))
            wait_until(lambda: any(hasattr(each, "read_paused") for each in server.state.connections))
            (connection,) = server.state.connections
            fill(deaf, message, connection)
            server.stop()
        assert connection not in server.state.connections


def fill(socket: sockets.socket, message: bytes, connection: Any) -> None:
    """Until the service does not read on, because it cannot answer."""
    socket.setblocking(False)
    rest = message

    def is_full() -> bool:
        nonlocal rest
        with suppress(BlockingIOError):
            while not connection.read_paused:
                rest = rest[socket.send(rest) :] or message
        return bool(connection.read_paused)

    wait_until(is_full)
