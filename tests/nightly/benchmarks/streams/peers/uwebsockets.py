"""`CLIENT_PORT TICK_PORT`: uWebSockets in C++ under socketify, a topic for each symbol."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import msgspec
from socketify import App, CompressOptions, OpCode

from .lines import Lines, symbol_of

MOST_WAITING = 16 * 1024 * 1024
app: Any = App()


def subscribe(socket: Any, message: Any, opcode: Any) -> None:
    for symbol in msgspec.json.decode(message)["symbols"]:
        socket.subscribe(symbol)


def publish(line: bytes) -> None:
    app.publish(symbol_of(line), line, OpCode.TEXT, False)


async def open_tick_port(port: int) -> None:
    await asyncio.get_running_loop().create_server(lambda: Lines(publish), "127.0.0.1", port)


def main() -> None:
    options = {
        "compression": CompressOptions.DISABLED,
        "max_backpressure": MOST_WAITING,
        "idle_timeout": 120,
        "open": lambda socket: None,
        "message": subscribe,
    }
    app.ws("/*", options)
    app.listen({"port": int(sys.argv[1]), "host": "127.0.0.1"}, lambda config: None)
    app.loop.loop.create_task(open_tick_port(int(sys.argv[2])))
    app.run()


if __name__ == "__main__":
    main()
