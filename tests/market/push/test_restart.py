"""A server that is about to end: what was sent to it is answered, and what is not answered was not taken.
Over Redis, with engines of their own, tests/reliability/restarts/test_rolling_traffic.py shows it."""

from __future__ import annotations

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
from tests.patience import PATIENCE_S

from .conftest import make_ingest_key, make_tick
from .test_session import handshake, masked

SENT = 50


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


def ticks_of(symbol: str, seqs: range) -> list[str]:
    now = clock.now_ms()
    made = ({"id": seq, **make_tick(symbol, seq=seq, time=now - 10_000 + seq)} for seq in seqs)
    return [json.dumps({"id": tick.pop("id"), "ticks": [tick]}) for tick in made]


def answered(frames: list[dict[str, Any]]) -> list[int]:
    return [frame["id"] for frame in frames if frame["type"] == "result" and frame["accepted"] == 1]


def test_what_was_sent_is_answered_before_the_socket_closes_with_1012(
    server: Server, socket: ClientConnection
) -> None:
    symbol = make_instrument("PUSHEDLAST").symbol
    for text in ticks_of(symbol, range(SENT)):
        socket.send(text)
    with stopping(server):
        frames = all_heard(socket)
    assert [frame["code"] for frame in frames if frame["type"] == "notice"] == ["restarting"]
    assert answered(frames) == list(range(SENT))
    assert socket.close_code == 1012


def test_who_has_nothing_to_send_is_told_and_closed(server: Server, socket: ClientConnection) -> None:
    with stopping(server):
        assert [frame["type"] for frame in all_heard(socket)] == ["notice"]
    assert socket.close_code == 1012


def test_who_goes_on_sending_is_closed_and_only_what_was_answered_is_taken(
    server: Server, socket: ClientConnection
) -> None:
    symbol = make_instrument("PUSHEDON").symbol
    texts = ticks_of(symbol, range(9_000))
    sending = threading.Thread(target=send_all, args=(socket, texts), daemon=True)
    sending.start()
    with stopping(server):
        taken = answered(all_heard(socket))
    sending.join(PATIENCE_S)
    assert socket.close_code == 1012
    assert taken == list(range(len(taken)))
    with Server() as again, connected(again) as after:
        verdicts = [ask(after, texts[seq])["accepted"] for seq in (taken[-1], taken[-1] + 1)]
    assert verdicts == [0, 1]


def test_who_never_reads_holds_the_server_up_no_longer(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("market.push.session.LAST_ANSWERS_S", 0.1)
    monkeypatch.setattr("market.push.session.UNREAD_S", 0.1)
    monkeypatch.setattr("serving.websocket.protocol.STALLED_LINGER_S", 0.1)
    message = masked(b"[" + b'{"symbol":"NOPE"},' * 300 + b"0]")
    with sockets.socket() as deaf:
        deaf.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 4_096)
        with Server() as server:
            deaf.connect(("127.0.0.1", server.port))
            deaf.sendall(handshake(server.port, make_ingest_key()))
            deaf.settimeout(0.5)
            with pytest.raises(TimeoutError):
                fill(deaf, message)
            (connection,) = server.state.connections
            server.stop()
        assert connection not in server.state.connections


def fill(socket: sockets.socket, message: bytes) -> None:
    """Until nothing goes out any more, because nothing is read."""
    while True:
        socket.sendall(message)


def send_all(socket: ClientConnection, texts: list[str]) -> None:
    """Faster than they are answered, for longer than a server waits."""
    with suppress(ConnectionClosed):
        for text in texts:
            socket.send(text)
            time.sleep(0.001)


def ask(socket: ClientConnection, text: str) -> dict[str, Any]:
    socket.send(text)
    return heard(socket)
