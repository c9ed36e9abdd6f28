"""What becomes of a connection whose server ends."""

from __future__ import annotations

from .serving import HOST, hear, serving, statuses

REQUEST = b"GET / HTTP/1.1\r\n" + HOST
UPGRADE = (
    b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


def test_request_whose_head_had_begun_is_answered() -> None:
    with serving() as running, running.connect() as waiting, running.connect() as begun:
        begun.sendall(REQUEST)
        waiting.sendall(REQUEST + b"\r\n")
        assert statuses(waiting.recv(1 << 16)) == [200]
        running.begin_to_stop()
        assert hear(waiting) == b""
        begun.sendall(b"\r\n")
        heard = hear(begun)
    assert statuses(heard) == [200]
    assert b"connection: close" in heard.lower()


def test_websocket_whose_head_had_begun_is_sent_away() -> None:
    with serving() as running, running.connect() as waiting, running.connect() as begun:
        begun.sendall(REQUEST)
        waiting.sendall(REQUEST + b"\r\n")
        assert statuses(waiting.recv(1 << 16)) == [200]
        running.begin_to_stop()
        assert hear(waiting) == b""
        begun.sendall(UPGRADE)
        heard = hear(begun)
    assert statuses(heard) == [503]
    assert b"Connect again at once." in heard
