"""Whether a server is asked on the short path, which no answer shows: known requests that come together are
answered in one write, and the ordinary path writes each by itself."""

from __future__ import annotations

import socket
import struct

TOGETHER = 8
END_OF_HEAD = b"\r\n\r\n"
# Of struct tcp_info in linux/tcp.h: tcpi_data_segs_in.
SEGMENTS_AT, SEGMENTS_END = 152, 156


def is_on(port: int, path: str, key: str) -> bool:
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: {key}\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        # The first makes the key known, and the second the head.
        for _ in range(2):
            exchange(connection, request, 1)
        before = segments(connection)
        exchange(connection, request, TOGETHER)
        return segments(connection) - before == 1


def exchange(connection: socket.socket, request: bytes, count: int) -> None:
    connection.sendall(request * count)
    answers = b""
    while answers.count(END_OF_HEAD) < count or not answers.endswith(b"}"):
        part = connection.recv(1 << 20)
        if not part:
            raise RuntimeError(f"The connection ended after {answers[-200:]!r}.")
        answers += part


def segments(connection: socket.socket) -> int:
    """With data, that have come in."""
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, SEGMENTS_END)
    (count,) = struct.unpack("I", info[SEGMENTS_AT:SEGMENTS_END])
    return int(count)
