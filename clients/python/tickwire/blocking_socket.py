"""A WebSocket for a caller that waits. One thread does all its reading and writing: where two do, as in
websockets.sync, what one of them sends over TLS is lost now and then."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, TypeVar

from websockets.asyncio.client import ClientConnection, connect

from .calls import USER_AGENT
from .session import CLOSE_S

T = TypeVar("T")


class BlockingSocket:
    def __init__(self, url: str) -> None:
        self._url = url
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"stream of {url}", daemon=True)

    def __enter__(self) -> BlockingSocket:
        self._thread.start()
        try:
            self._socket = self._wait(self._open())
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        # A stream that is left open when the program ends: its thread has ended already.
        if sys.is_finalizing():
            return
        try:
            self._wait(self._socket.close())
        finally:
            self._end()

    def send(self, text: str) -> None:
        self._wait(self._socket.send(text))

    def recv(self, timeout_s: float) -> str | bytes:
        return self._wait(asyncio.wait_for(self._socket.recv(), timeout_s))

    async def _open(self) -> ClientConnection:
        return await connect(self._url, max_size=None, user_agent_header=USER_AGENT, close_timeout=CLOSE_S)

    def _wait(self, act: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(act, self._loop).result()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
