"""Where ticks enter the product: one a line over TCP, decoded and pushed to the engine of this process."""

from __future__ import annotations

import asyncio

import msgspec

from market.prices.records import Tick
from market.runtime import market


class Line(msgspec.Struct, gc=False):
    symbol: str
    bid: float
    ask: float
    time: int
    volume: float


read_lines = msgspec.json.Decoder(Line).decode_lines


class TickPort(asyncio.Protocol):
    _rest = b""

    def data_received(self, data: bytes) -> None:
        whole, newline, self._rest = (self._rest + data).rpartition(b"\n")
        if newline:
            ticks = [
                Tick(line.symbol, line.bid, line.ask, line.time, line.volume) for line in read_lines(whole)
            ]
            self._push(ticks)

    def _push(self, ticks: list[Tick]) -> None:
        assert market.runner is not None
        refused = [reason for reason in market.runner.push("push", ticks) if reason]
        if refused:
            raise RuntimeError(f"A tick was refused: {refused[0]}")


async def open_tick_port(port: int) -> None:
    await asyncio.get_running_loop().create_server(TickPort, "127.0.0.1", port)
