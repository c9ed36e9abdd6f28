"""daphne in a thread. Twisted's reactor starts once a process, so one daphne serves all tests in turn."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from functools import cache
from types import TracebackType
from typing import Any, TypeVar

from tests.client import Server
from tests.patience import PATIENCE_S
from tests.programs.services import free_port

T = TypeVar("T")


class Reactor:
    """daphne's own, which is an asyncio loop."""

    def __init__(self) -> None:
        from daphne.server import Server as Daphne
        from twisted.internet import reactor

        from config.asgi import application

        self.port = free_port()
        endpoint = f"tcp:port={self.port}:interface=127.0.0.1"
        is_ready = threading.Event()
        self.daphne = Daphne(
            application, endpoints=[endpoint], signal_handlers=False, ready_callable=is_ready.set
        )
        self.loop: asyncio.AbstractEventLoop = reactor._asyncioEventloop
        # Else a test that moves the wall clock by a day has waited for longer than an idle connection may.
        reactor.seconds = self.loop.time  # type: ignore[method-assign,misc]
        threading.Thread(target=self.daphne.run, daemon=True).start()
        assert is_ready.wait(PATIENCE_S)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(PATIENCE_S)

    async def hang_up(self) -> None:
        """And wait until the application has noticed."""
        running = [details.get("application_instance") for details in self.daphne.connections.values()]
        for protocol in tuple(self.daphne.connections):
            # One that was upgraded has handed its transport on.
            if protocol.transport is not None:
                protocol.transport.abortConnection()
        if ends := [task for task in running if task is not None]:
            await asyncio.wait(ends, timeout=PATIENCE_S)


@cache
def reactor() -> Reactor:
    return Reactor()


class DaphneServer(Server):
    """daphne knows no lifespan: the first request opens the service, and here the test closes it."""

    def __init__(self) -> None:
        self._reactor = reactor()
        self.port = self._reactor.port
        self.url = f"http://127.0.0.1:{self.port}"

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._reactor.run(work)

    def stop(self) -> None:
        from config.asgi import service

        if service.is_ready:
            self.run(self._reactor.hang_up())
            self.run(service.stop())

    def __enter__(self) -> DaphneServer:
        from config.asgi import service

        self.run(service.ensure())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.stop()
