"""The server under test, and a client for its REST contract."""

from __future__ import annotations

import socket
import threading
import time
from types import TracebackType
from typing import Any

import httpx
import uvicorn

READY_WITHIN_S = 15


class Server:
    """uvicorn in a thread of this process, so that a test can reach the service's memory."""

    def __init__(self) -> None:
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        config = uvicorn.Config(
            "config.asgi:application", lifespan="on", access_log=False, log_config=None, proxy_headers=False
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)

    def __enter__(self) -> Server:
        self._thread.start()
        deadline = time.monotonic() + READY_WITHIN_S
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                raise RuntimeError("The server under test did not start.")
            time.sleep(0.005)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.should_exit = True
        self._thread.join(READY_WITHIN_S)
        self._socket.close()
        if self._thread.is_alive():
            raise RuntimeError("The server under test did not stop.")


class Api(httpx.Client):
    """GET /api paths with a key; `key=None` sends none."""

    def __init__(self, server: Server, key: str) -> None:
        super().__init__(base_url=server.url, timeout=10)
        self.key = key

    def ask(self, path: str, *, key: str | None = "own", method: str = "GET", **options: Any) -> httpx.Response:
        headers = dict(options.pop("headers", {}))
        if key is not None:
            headers["X-API-Key"] = self.key if key == "own" else key
        return self.request(method, path, headers=headers, **options)
