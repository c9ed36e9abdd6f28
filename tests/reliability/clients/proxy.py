"""A proxy before a stream that cuts connections anywhere, also within a frame, or tampers with one frame."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import cycle
from types import TracebackType

CHUNK = 4096
# What becomes of a server's frame: what is passed on in its place.
Tamper = Callable[[bytes], bytes]


class Proxy:
    """Each connection goes to the next of the ports, until it is cut."""

    def __init__(self, ports: Sequence[int], dice: random.Random, mean_s: float, mean_bytes: int) -> None:
        self._ports, self._dice = cycle(ports), dice
        self._mean_s, self._mean_bytes = mean_s, mean_bytes
        self.is_calm = False
        """Whether nothing is cut any more."""
        self.cuts = 0
        self.tamper: Tamper | None = None
        self.port = 0

    async def __aenter__(self) -> Proxy:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream = await asyncio.open_connection("127.0.0.1", next(self._ports))
        both = [
            asyncio.create_task(self._pass(reader, upstream[1])),
            asyncio.create_task(self._pass_down(upstream[0], writer)),
        ]
        limit_s = None if self.is_calm else self._dice.expovariate(1 / self._mean_s)
        try:
            done, _ = await asyncio.wait(both, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
            self.cuts += not done
        finally:
            for task in both:
                task.cancel()
            await asyncio.gather(*both, return_exceptions=True)
            self._end(writer)
            self._end(upstream[1])

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(CHUNK):
            writer.write(chunk)
            await writer.drain()

    async def _pass_down(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        left = int(self._dice.expovariate(1 / self._mean_bytes))
        if self.tamper is not None:
            await self._pass_frames(reader, writer, self.tamper)
        while chunk := await reader.read(CHUNK):
            if not self.is_calm and len(chunk) > left:
                writer.write(chunk[:left])
                await writer.drain()
                self.cuts += 1
                return
            left -= len(chunk)
            writer.write(chunk)
            await writer.drain()

    async def _pass_frames(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tamper: Tamper
    ) -> None:
        with suppress(asyncio.IncompleteReadError):
            writer.write(await reader.readuntil(b"\r\n\r\n"))
            while True:
                writer.write(tamper(await read_frame(reader)))
                await writer.drain()

    def _end(self, writer: asyncio.StreamWriter) -> None:
        """By a FIN, or by a reset as of a machine that is gone."""
        if self._dice.random() < 0.5:
            made: socket.socket = writer.get_extra_info("socket")
            made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        else:
            writer.close()


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    """Whole, with its header."""
    head = await reader.readexactly(2)
    size = head[1]
    if size >= 126:
        more = await reader.readexactly(2 if size == 126 else 8)
        head, size = head + more, int.from_bytes(more, "big")
    return head + await reader.readexactly(size)
