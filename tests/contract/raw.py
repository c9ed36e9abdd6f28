"""Requests byte by byte, where a client would tidy them up."""

from __future__ import annotations

import json
import socket
from http.client import HTTPResponse
from typing import Any, NamedTuple

from tests.client import Server
from tests.patience import PATIENCE_S


class RawAnswer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def code(self) -> str:
        error: dict[str, Any] = json.loads(self.body)["error"]
        return str(error["code"])

    @property
    def text(self) -> str:
        """All that came back, to look for what must not be in it."""
        return f"{self.headers} {self.body!r}"


def exchange(server: Server, request: bytes) -> RawAnswer:
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S) as connection:
        connection.sendall(request)
        with HTTPResponse(connection) as response:
            response.begin()
            headers = {name.lower(): value for name, value in response.getheaders()}
            return RawAnswer(response.status, headers, response.read())


def raw_get(
    server: Server, target: bytes, *lines: bytes, host: bytes | None = b"Host: 127.0.0.1"
) -> RawAnswer:
    """GET a target as it stands; each line is a header."""
    named = [host] if host is not None else []
    return exchange(server, b"\r\n".join([b"GET " + target + b" HTTP/1.1", *named, *lines, b"", b""]))


def conversation(server: Server, *requests: bytes) -> bytes:
    """All that comes back for several requests on one connection; the last line given goes with each."""
    *starts, line = requests
    parts = [start + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n" + line + b"\r\n" for start in starts]
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S) as connection:
        connection.sendall(b"\r\n".join(parts) + b"Connection: close\r\n\r\n")
        return b"".join(iter(lambda: connection.recv(65536), b""))
