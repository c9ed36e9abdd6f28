"""Clients that say little, from addresses of this machine that count apart: 127.0.0.1, 127.0.0.2, …"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from http.client import HTTPException, HTTPResponse

from tests.patience import PATIENCE_S

Counted = Sequence[socket.socket]


def connect(port: int, source: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), PATIENCE_S, source_address=(source, 0))


@contextmanager
def connections(port: int, count: int, sources: Sequence[str] = ("127.0.0.1",)) -> Iterator[Counted]:
    """Open all at once, whatever becomes of them."""
    opened: list[socket.socket] = []
    try:
        for number in range(count):
            with suppress(ConnectionError):
                opened.append(connect(port, sources[number % len(sources)]))
        yield opened
    finally:
        for client in opened:
            client.close()


def ask(client: socket.socket, path: str = "/healthz", *lines: str) -> int:
    """The status of the answer; 0 if the connection ends without one."""
    request = "\r\n".join([f"GET {path} HTTP/1.1", "Host: 127.0.0.1", *lines, "", ""])
    try:
        client.sendall(request.encode())
        with HTTPResponse(client) as answer:
            answer.begin()
            answer.read()
            return answer.status
    except (ConnectionError, HTTPException):
        return 0


def is_open(client: socket.socket) -> bool:
    client.setblocking(False)
    try:
        return client.recv(1, socket.MSG_PEEK) != b""
    except BlockingIOError:
        return True
    except ConnectionError:
        return False
    finally:
        client.settimeout(PATIENCE_S)
