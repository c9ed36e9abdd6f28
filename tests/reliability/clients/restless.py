"""Clients that come, hear a little, and go in every way there is, so that sockets' numbers change hands."""

from __future__ import annotations

import asyncio
import json
import random
import re
import socket
import struct
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

from tests.patience import PATIENCE_S
from tests.serving.websocket.wires import CLOSE, TEXT, handshake, masked

ENDS = ("reset", "half-close", "abort", "protocol error", "slow", "close")
SYMBOL = re.compile(rb'"symbol":"(\w+)","bid"')
SLOW_S = 0.15
HTTP = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


class Restless:
    """As many at once as there are workers."""

    def __init__(self, port: int, key: str, symbols: Sequence[str], seed: int) -> None:
        self._port, self._key, self._symbols = port, key, symbols
        self._chosen = random.Random(seed)  # noqa: S311
        self.done: Counter[str] = Counter()
        self.foreign: list[bytes] = []
        """What came to whom it was not for."""

    async def run(self, workers: int, visits: int) -> None:
        """So many visits of each."""
        await asyncio.gather(*(self._work(visits) for _ in range(workers)))

    async def _work(self, visits: int) -> None:
        for _ in range(visits):
            how = self._chosen.choice((*ENDS, "http"))
            with socket.socket() as made:
                if how == "slow":
                    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                made.setblocking(False)
                with suppress(OSError, TimeoutError):
                    async with asyncio.timeout(PATIENCE_S):
                        await self._visit(made, how)
                        self.done[how] += 1

    async def _visit(self, made: socket.socket, how: str) -> None:
        loop = asyncio.get_running_loop()
        await loop.sock_connect(made, ("127.0.0.1", self._port))
        if how == "http":
            await self._ask(made)
            return
        symbol = self._chosen.choice(self._symbols)
        await loop.sock_sendall(made, handshake(path="/ws/market"))
        await hear(made, b"\r\n\r\n")
        message = {"action": "subscribe", "symbols": [symbol], "api_key": self._key}
        await loop.sock_sendall(made, masked(TEXT, json.dumps(message).encode()))
        heard = await hear(made, b'"subscribed"')
        if how == "slow":
            await asyncio.sleep(SLOW_S)
        else:
            heard += await hear(made, b'"bid"')
        self.foreign += [name for name in SYMBOL.findall(heard) if name != symbol.encode()]
        await self._go(made, how)

    async def _ask(self, made: socket.socket) -> None:
        """On a connection that stays for a while, and is due nothing but its answers."""
        for _ in range(3):
            await asyncio.get_running_loop().sock_sendall(made, HTTP)
            answer = await hear(made, b"}")
            head, _, body = answer.partition(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 ") or b'"bid"' in body:
                self.foreign.append(answer[:200])
            await asyncio.sleep(self._chosen.random() / 10)

    async def _go(self, made: socket.socket, how: str) -> None:
        loop = asyncio.get_running_loop()
        if how == "reset":
            made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif how == "half-close":
            made.shutdown(socket.SHUT_WR)
            await until_closed(made)
        elif how == "protocol error":
            await loop.sock_sendall(made, b"\xff\xff\xff\xff")
            await until_closed(made)
        elif how == "close":
            await loop.sock_sendall(made, masked(CLOSE, (1000).to_bytes(2, "big")))
            await until_closed(made)


async def hear(made: socket.socket, what: bytes) -> bytes:
    heard = b""
    while what not in heard:
        part = await asyncio.get_running_loop().sock_recv(made, 4096)
        if not part:
            raise ConnectionResetError
        heard += part
    return heard


async def until_closed(made: socket.socket) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE_S):
            while await asyncio.get_running_loop().sock_recv(made, 65_536):
                pass
