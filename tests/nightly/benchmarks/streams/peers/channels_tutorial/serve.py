"""`CLIENT_PORT TICK_PORT`: daphne with the tutorial's consumer; each tick is sent to the group."""

from __future__ import annotations

import asyncio
import json
import sys

from daphne.server import Server
from twisted.internet import reactor

from ..lines import Lines
from .asgi import application
from .consumers import GROUP

due: asyncio.Queue[bytes] = asyncio.Queue()


async def hand_on() -> None:
    from channels.layers import get_channel_layer

    layer = get_channel_layer()
    while True:
        line = await due.get()
        await layer.group_send(GROUP, {"type": "tick.message", "message": json.loads(line)})


async def open_tick_port(port: int) -> None:
    loop = asyncio.get_running_loop()
    await loop.create_server(lambda: Lines(due.put_nowait), "127.0.0.1", port)
    await hand_on()


def main() -> None:
    port, tick_port = map(int, sys.argv[1:3])
    server = Server(application, [f"tcp:port={port}:interface=127.0.0.1"], signal_handlers=False)
    reactor.callWhenRunning(lambda: asyncio.get_event_loop().create_task(open_tick_port(tick_port)))
    server.run()


if __name__ == "__main__":
    main()
