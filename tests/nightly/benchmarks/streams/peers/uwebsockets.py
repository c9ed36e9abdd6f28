"""`CLIENT_PORT TICK_PORT`: uWebSockets in C++ under socketify, a topic for each symbol."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import msgspec
from socketify import App, CompressOptions, OpCode

MOST_WAITING = 16 * 1024 * 1024
app: Any = App()


def subscribe(socket: Any, message: Any, opcode: Any) -> None:
    for symbol in msgspec.json.decode(message)["symbols"]:
        socket.subscribe(symbol)


class Ticks(asyncio.Protocol):
    """One a line."""

    _rest = b""

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            # Of {"symbol":"SYM000",…}.
            app.publish(line[11:17].decode(), line, OpCode.TEXT, False)


async def open_tick_port(port: int) -> None:
    await asyncio.get_running_loop().create_server(Ticks, "127.0.0.1", port)


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
