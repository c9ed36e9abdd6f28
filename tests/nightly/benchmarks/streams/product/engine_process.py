"""`TICK_PORT`: `manage.py run_engine` with a port for ticks."""

from __future__ import annotations

import asyncio
import sys

from tests.programs.installation import set_up

WATCH_S = 0.05


async def main(tick_port: int) -> None:
    from market.management.commands.run_engine import Command
    from market.runtime import market

    from .tick_port import open_tick_port

    running = asyncio.create_task(Command().run())
    while market.runner is None or not market.runner.is_running:  # noqa: ASYNC110 - it tells nobody
        await asyncio.sleep(WATCH_S)
    await open_tick_port(tick_port)
    await running


if __name__ == "__main__":
    set_up()
    asyncio.run(main(int(sys.argv[1])))
