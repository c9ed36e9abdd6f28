"""`PORT TICK_PORT [CERTIFICATE KEY]`: the service as `manage.py serve` runs it, with a port for ticks.
Where REDIS_URL is set the engine is elsewhere, and so is the port."""

from __future__ import annotations

import socket
import sys

import uvicorn
from django.conf import settings

from serving.server import UVICORN_OPTIONS


class OpenToTicks(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, tick_port: int) -> None:
        super().__init__(config)
        self._tick_port = tick_port

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and not settings.REDIS_URL:
            from .tick_port import open_tick_port

            await open_tick_port(self._tick_port)


def main() -> None:
    port, tick_port = map(int, sys.argv[1:3])
    certificate, key = sys.argv[3:5] or (None, None)
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
        ssl_certfile=certificate,
        ssl_keyfile=key,
        **UVICORN_OPTIONS,
    )
    OpenToTicks(config, tick_port).run()


if __name__ == "__main__":
    main()
