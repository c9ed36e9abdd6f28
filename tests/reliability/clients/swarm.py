"""Hundreds of raw sockets in one loop, good ones and bad ones: no library between them and the service."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Sequence
from typing import Any

from tests.patience import PATIENCE_S
from tests.serving.websocket.wires import CLOSE, PING, PONG, TEXT, handshake, masked

Reply = dict[str, Any]
FEW_BYTES = 4096
# A price with its own time and its number: up to its end, so that a number is never cut short.
PRICE = re.compile(rb'"symbol":"(\w+)"[^}]*?"time":(\d+)[^}]*?"seq":(\d+),"sent":\d+}')

# In a text and its header, no byte as small as a ping's length follows this one.
PINGS = re.compile(rb"\x89([\x00-\x1f])")


class Listener(asyncio.Protocol):
    """Reads all that comes, and checks the numbers of what it hears."""

    def __init__(self, path: str, message: Reply) -> None:
        self._path, self._message = path, message
        self._unread = b""
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        """The code of the close; 1006 without one."""
        self._lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.positions: dict[bytes, int] = {}
        self.frames = self.missed = 0
        self.gaps: list[str] = []
        """The epochs of those that were announced."""
        self.notices: dict[str, int] = {}
        """By code, the time of the last: that of the service, in milliseconds."""
        self.late_ms: list[int] = []
        """How old the newest tick of each packet was."""

    def connection_made(self, transport: Any) -> None:
        self.transport: asyncio.Transport = transport
        transport.write(handshake(path=self._path))

    def data_received(self, data: bytes) -> None:
        self._unread += data
        if not self.opened.done() and b"\r\n\r\n" in self._unread:
            self.opened.set_result(None)
            self._unread = self._unread.partition(b"\r\n\r\n")[2]
            if self._message:
                self.transport.write(masked(TEXT, json.dumps(self._message).encode()))
        if not self.reply.done():
            self._take_reply()
        if self.reply.done():
            self._take_prices()

    def _take_reply(self) -> None:
        for opcode, payload, rest in frames(self._unread):
            if opcode == TEXT:
                self._unread = rest
                reply = json.loads(payload)
                self.positions = {name.encode(): seq for name, seq in reply.get("positions", {}).items()}
                self.reply.set_result(reply)
                return

    def _take_prices(self) -> None:
        if b'"type":"gap"' in self._unread:
            self._take_controls()
        found = None
        for found in PRICE.finditer(self._unread):
            self._note(found)
        if found is not None:
            self.late_ms.append(time.time_ns() // 1_000_000 - int(found[2]))
            self._answer_pings(self._unread[: found.end()])
            self._unread = self._unread[found.end() :]
        if len(self._unread) < FEW_BYTES:
            self._take_controls()

    def _answer_pings(self, data: bytes) -> None:
        for ping in PINGS.finditer(data):
            self.transport.write(masked(PONG, data[ping.end() : ping.end() + ping[1][0]]))

    def _note(self, price: re.Match[bytes]) -> None:
        symbol, seq = price[1], int(price[3])
        self.missed += seq != self.positions.get(symbol, seq - 1) + 1
        self.positions[symbol] = seq
        self.frames += 1

    def _take_controls(self) -> None:
        """Pings, gaps and the close, and the prices between them."""
        for opcode, payload, rest in frames(self._unread):
            self._unread = rest
            if opcode == CLOSE:
                self._end(int.from_bytes(payload[:2], "big"))
                self.transport.write(masked(CLOSE, payload[:2]))
            elif opcode == PING:
                self.transport.write(masked(PONG, payload))
            elif b'"type":"gap"' in payload:
                gap = json.loads(payload)
                self.gaps.append(gap["epoch"])
                self.positions = {name.encode(): seq for name, seq in gap["positions"].items()}
            elif b'"type":"notice"' in payload:
                notice = json.loads(payload)
                self.notices[notice["code"]] = notice["time"]
            elif price := PRICE.search(payload):
                self._note(price)

    def has_heard(self, symbol: str, count: int) -> bool:
        """So many numbers since it came."""
        first: int = self.reply.result()["positions"][symbol]
        return self.positions.get(symbol.encode()) == first + count

    async def leave(self) -> None:
        """Without a word."""
        self.transport.abort()
        await self._lost

    def connection_lost(self, error: Exception | None) -> None:
        self._lost.set_result(None)
        self._end(1006)
        if not self.reply.done():
            self.reply.cancel()

    def _end(self, code: int) -> None:
        if not self.ended.done():
            self.ended.set_result(code)


def frames(data: bytes) -> Any:
    """Opcode, payload and what comes after, of each frame that is whole."""
    while len(data) >= 2:
        size, start = data[1], 2
        if size >= 126:
            start = 4 if size == 126 else 10
            size = int.from_bytes(data[2:start], "big")
        if len(data) < start + size:
            return
        opcode, payload, data = data[0] & 0x0F, data[start : start + size], data[start + size :]
        yield opcode, payload, data


async def listen(port: int, path: str, message: Reply) -> Listener:
    """Until it is answered."""
    loop = asyncio.get_running_loop()
    _, listener = await loop.create_connection(lambda: Listener(path, message), "127.0.0.1", port)
    async with asyncio.timeout(PATIENCE_S):
        await listener.reply
    return listener


async def listen_many(ports: Sequence[int], path: str, message: Reply, count: int) -> list[Listener]:
    made: list[Listener] = []
    while len(made) < count:
        # A hundred handshakes at a time: a backlog of connections has an end.
        chunk = range(len(made), min(count, len(made) + 100))
        made += await asyncio.gather(*(listen(ports[n % len(ports)], path, message) for n in chunk))
    return made
