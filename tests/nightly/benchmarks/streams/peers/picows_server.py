"""`CLIENT_PORT TICK_PORT`: picows, WebSockets in Cython on uvloop, one send for each message."""

from __future__ import annotations

import asyncio
import sys
from collections import defaultdict
from typing import Any

import msgspec
import uvloop
from picows import WSListener, WSMsgType, ws_create_server

from .lines import Lines, symbol_of

hearers: defaultdict[str, dict[Any, None]] = defaultdict(dict)


class Client(WSListener):
    def on_ws_frame(self, transport: Any, frame: Any) -> None:
        if frame.msg_type == WSMsgType.TEXT:
            for symbol in msgspec.json.decode(frame.get_payload_as_bytes())["symbols"]:
                hearers[symbol][transport] = None
        elif frame.msg_type == WSMsgType.CLOSE:
            transport.disconnect()

    def on_ws_disconnected(self, transport: Any) -> None:
        for transports in hearers.values():
            transports.pop(transport, None)


def publish(line: bytes) -> None:
    for transport in hearers[symbol_of(line)]:
        transport.send(WSMsgType.TEXT, line)


async def main() -> None:
    server = await ws_create_server(lambda request: Client(), "127.0.0.1", int(sys.argv[1]))
    await asyncio.get_running_loop().create_server(lambda: Lines(publish), "127.0.0.1", int(sys.argv[2]))
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
