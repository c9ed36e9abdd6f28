"""The product with a port at which ticks enter, one a line over TCP.

`prepare SYMBOLS` fills the database of VAR_DIR and DATABASE_URL, and prints a key with room for all sockets.
`serve PORT TICK_PORT` is the service as `manage.py serve` runs it; where REDIS_URL is set,
engine and port are elsewhere. `engine TICK_PORT` is `manage.py run_engine`."""

from __future__ import annotations

import asyncio
import socket
import sys

import msgspec

from tests.programs.installation import set_up

STREAMS = 100_000
WATCH_S = 0.05


class Line(msgspec.Struct, gc=False):
    symbol: str
    bid: float
    ask: float
    time: int
    volume: float


read_lines = msgspec.json.Decoder(Line).decode_lines


class TickPort(asyncio.Protocol):
    """What comes is decoded and pushed to the engine of this process."""

    _rest = b""

    def data_received(self, data: bytes) -> None:
        from market.prices.records import Tick
        from market.runtime import market

        whole, newline, self._rest = (self._rest + data).rpartition(b"\n")
        if not newline:
            return
        ticks = [Tick(line.symbol, line.bid, line.ask, line.time, line.volume) for line in read_lines(whole)]
        assert market.runner is not None
        refused = [reason for reason in market.runner.push("push", ticks) if reason]
        if refused:
            raise RuntimeError(f"A tick was refused: {refused[0]}")


async def open_tick_port(port: int) -> None:
    await asyncio.get_running_loop().create_server(TickPort, "127.0.0.1", port)


def prepare(symbols: int) -> None:
    from django.core.management import call_command

    from tests.factories import make_account, make_instruments, make_key, make_tier

    call_command("migrate", verbosity=0)
    # A volume is passed on as it is, so that a tick is known again by it.
    make_instruments([f"SYM{number:03}" for number in range(symbols)], source="push", volume_kind="traded")
    sys.stdout.write(make_key(make_account(tier=make_tier("crowd", streams=STREAMS))))


async def run_engine(tick_port: int) -> None:
    from market.management.commands.run_engine import Command
    from market.runtime import market

    running = asyncio.create_task(Command().run())
    while market.runner is None or not market.runner.is_running:  # noqa: ASYNC110 - it tells nobody
        await asyncio.sleep(WATCH_S)
    await open_tick_port(tick_port)
    await running


def serve(port: int, tick_port: int) -> None:
    import uvicorn
    from django.conf import settings

    from serving.server import UVICORN_OPTIONS

    class OpenToTicks(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started and not settings.REDIS_URL:
                await open_tick_port(tick_port)

    config = uvicorn.Config(
        "config.asgi:application",
        port=port,
        loop="uvloop",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=4096,
        **UVICORN_OPTIONS,
    )
    OpenToTicks(config).run()


if __name__ == "__main__":
    act, *words = sys.argv[1:]
    if act == "serve":
        serve(*map(int, words))
    else:
        set_up()
        prepare(int(words[0])) if act == "prepare" else asyncio.run(run_engine(int(words[0])))
