"""`python -m tests.benchmarks.streams_server CLIENT_PORT TICK_PORT`: the wire and the hub, and nothing else.

Ticks come over TCP, one JSON object a line; clients send {"symbols": [...]} and hear theirs.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import uvicorn

from market.streams.hub import Hub
from market.streams.wire import UVICORN, connection_of

hub = Hub()


class Line:
    __slots__ = ("text",)

    def __init__(self, text: bytes) -> None:
        self.text = text

    def payload(self, variant: int) -> bytes:
        return self.text


class Ticks(asyncio.Protocol):
    _rest = b""

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            hub.publish(Line(line), symbol_of(line))


def symbol_of(line: bytes) -> str:
    """Of {"symbol":"SYM000",…}."""
    return line[11:17].decode()


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    await receive()
    connection = connection_of(scope, send)
    connection.guard(16 * 1024)
    await send({"type": "websocket.accept"})
    seat = hub.join(connection, lambda: seat.end(4430))
    while (event := await receive())["type"] != "websocket.disconnect":
        hub.subscribe(seat, json.loads(event["text"])["symbols"])


async def serve(client_port: int, tick_port: int) -> None:
    await asyncio.get_running_loop().create_server(Ticks, "127.0.0.1", tick_port)
    config = uvicorn.Config(
        application, port=client_port, lifespan="off", access_log=False, log_config=None, **UVICORN
    )
    await uvicorn.Server(config).serve()


if __name__ == "__main__":
    import uvloop

    uvloop.run(serve(int(sys.argv[1]), int(sys.argv[2])))
