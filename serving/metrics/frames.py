"""What a worker and its supervisor tell each other about figures, over a pair of sockets of their own."""

import asyncio
import struct

import msgspec

from .snapshots import Snapshot

ASK, FIGURES, WANT, TOTALS = b"A", b"F", b"W", b"T"
LENGTH = struct.Struct("!cI")

# JSON has no infinity, which is what some limits are.
encoder, decoder = msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder(Snapshot)


async def read_frame(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    kind, size = LENGTH.unpack(await reader.readexactly(LENGTH.size))
    return kind, await reader.readexactly(size)


def frame(kind: bytes, payload: bytes = b"") -> bytes:
    return LENGTH.pack(kind, len(payload)) + payload
