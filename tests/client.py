"""The server under test, and a client for its REST contract."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, TypeVar

import httpx
import uvicorn
from uvicorn.server import ServerState

from serving.server import UVICORN_OPTIONS
from serving.websocket.protocol import WebSocketProtocol

from .patience import PATIENCE_S

T = TypeVar("T")


class LoopedServer(uvicorn.Server):
    loop: asyncio.AbstractEventLoop | None = None
    _looking: asyncio.Task[None] | None = None

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        self.loop = asyncio.get_running_loop()
        await super().serve(sockets)

    async def main_loop(self) -> None:
        self._looking = asyncio.create_task(super().main_loop())
        await asyncio.wait([self._looking])

    def stop(self) -> None:
        """Without waiting until it looks whether it should, ten times a second."""
        self.should_exit = True
        if self.loop is not None and self._looking is not None and not self._looking.done():
            self.loop.call_soon_threadsafe(self._looking.cancel)


class Server:
    """uvicorn in a thread of this process, so that a test can reach the service's memory."""

    def __init__(self, **options: Any) -> None:
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        config = uvicorn.Config(
            "config.asgi:application",
            lifespan="on",
            access_log=False,
            log_config=None,
            proxy_headers=False,
            **UVICORN_OPTIONS | options,
        )
        self._server = LoopedServer(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """On the server's own loop, where the connections of the service live."""
        assert self._server.loop is not None
        return asyncio.run_coroutine_threadsafe(work, self._server.loop).result(PATIENCE_S)

    def make_protocol(self) -> Any:
        """What a new connection would get."""
        config = self._server.config
        make: Any = config.http_protocol_class
        return make(config=config, server_state=self.state, app_state=self._server.lifespan.state)

    @property
    def state(self) -> ServerState:
        """The connections and requests that are open."""
        return self._server.server_state

    def stop(self) -> None:
        self._server.stop()
        self._thread.join(PATIENCE_S)

    def __enter__(self) -> Server:
        self._thread.start()
        deadline = time.monotonic() + PATIENCE_S
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                raise RuntimeError("The server under test did not start.")
            time.sleep(0.005)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.stop()
        self._socket.close()
        if self._thread.is_alive():
            raise RuntimeError("The server under test did not stop.")


def drop_sockets(server: Server) -> None:
    """Of all streams, as a network does it: without a word."""

    async def drop() -> None:
        for connected in list(server.state.connections):
            if isinstance(connected, WebSocketProtocol):
                connected.transport.abort()

    server.run(drop())


class Api(httpx.Client):
    """GET /api paths with a key; `key=None` sends none."""

    def __init__(self, server: Server, key: str) -> None:
        super().__init__(base_url=server.url, timeout=PATIENCE_S)
        self.key = key

    def ask(
        self, path: str, *, key: str | None = "own", method: str = "GET", **options: Any
    ) -> httpx.Response:
        headers = dict(options.pop("headers", {}))
        if key is not None:
            headers["X-API-Key"] = self.key if key == "own" else key
        return self.request(method, path, headers=headers, **options)
