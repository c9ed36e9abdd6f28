"""Clients that read nothing."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from pathlib import Path
from typing import Any

from tests.patience import PATIENCE_S
from tests.serving.websocket.wires import TEXT, handshake, masked

SMALL_BUFFER, ESTABLISHED = 4096, "01"


class Deaf:
    def __init__(self, made: socket.socket) -> None:
        self._socket = made
        self.port: int = made.getsockname()[1]
        self.began_at = time.monotonic()

    def say(self, data: bytes) -> None:
        """As a client that is alive, and still reads nothing."""
        try:
            self._socket.send(data)
        except OSError:
            return

    def close(self) -> None:
        self._socket.close()


async def stop_reading(port: int, path: str, message: dict[str, Any]) -> Deaf:
    """Subscribed, with hardly a buffer, and reading nothing more."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER)
    made.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(made, ("127.0.0.1", port))
    await loop.sock_sendall(made, handshake(path=path))
    await hear(made, b"\r\n\r\n")
    await loop.sock_sendall(made, masked(TEXT, json.dumps(message).encode()))
    await hear(made, b'"subscribed"')
    return Deaf(made)


async def hear(made: socket.socket, what: bytes) -> None:
    heard = b""
    async with asyncio.timeout(PATIENCE_S):
        while what not in heard:
            part = await asyncio.get_running_loop().sock_recv(made, 256)
            assert part, "the service closed"
            heard += part


def served_by(port: int) -> set[int]:
    """The ports of the clients that a server still holds. Only the kernel knows: who reads nothing does
    not hear of the end either."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    ours = [row for row in rows if row[3] == ESTABLISHED and port_in(row[1]) == port]
    return {port_in(row[2]) for row in ours}


def port_in(address: str) -> int:
    return int(address.partition(":")[2], 16)
