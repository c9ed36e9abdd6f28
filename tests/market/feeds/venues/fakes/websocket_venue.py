"""A fake venue that speaks WebSocket, and tells its history over HTTP on the same port."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from http import HTTPStatus
from typing import Any, cast

import msgspec
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode
from websockets.http11 import Request, Response

from market.engine.venues.venue_feed import WebSocketFeed

from .venue import FakeVenue, Visit, make_pace


class FakeWebSocketVenue(FakeVenue):
    def __init__(self) -> None:
        super().__init__()
        self.refuses_with: HTTPStatus | None = None
        self.sent_at_once: list[bytes] = []
        """Said to every connection before it has asked for anything."""
        self._connections: list[ServerConnection] = []
        self._is_hushed = asyncio.Event()
        self._server: Server | None = None
        self.port = 0

    @abstractmethod
    def answers(self, request: dict[str, Any], visit: Visit) -> list[bytes]: ...
    @abstractmethod
    def history(self, path: str) -> bytes: ...

    def make_feed(self, symbols: dict[str, str] | None = None, **pace: Any) -> WebSocketFeed:
        make = cast("type[WebSocketFeed]", self.feed_class)
        ws_url, rest_url = self.settings.values()
        wanted = self.symbols if symbols is None else symbols
        return self.follow(make(wanted, ws_url, rest_url, make_pace(**pace)))

    @property
    def settings(self) -> dict[str, str]:
        at, name = f"127.0.0.1:{self.port}", self.feed_name.upper()
        return {f"{name}_WS_URL": f"ws://{at}", f"{name}_REST_URL": f"http://{at}"}

    async def start(self) -> None:
        self._server = await serve(
            self._serve,
            "127.0.0.1",
            self.port,
            process_request=self._process,
            close_timeout=0.2,
            compression=None,
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        if self._server is not None:
            self._is_hushed.set()
            self.may_tell_history.set()
            for connection in self._connections:
                connection.transport.abort()
            self._server.close()
            await self._server.wait_closed()

    async def send(self, *messages: bytes) -> None:
        for message in messages:
            await self._connections[-1].send(message, text=True)

    async def close(self, code: int = CloseCode.GOING_AWAY, reason: str = "") -> None:
        await self._connections[-1].close(code, reason)

    async def reset(self) -> None:
        self._connections[-1].transport.abort()

    def hush(self) -> None:
        for connection in self._connections:
            connection.transport.pause_reading()
        self._is_hushed.set()

    async def _serve(self, connection: ServerConnection) -> None:
        visit = Visit()
        self.visits.append(visit)
        self._connections.append(connection)
        try:
            await self._talk(connection, visit)
        except ConnectionClosed as closed:
            visit.is_closed_well = closed.rcvd is not None and closed.rcvd.code == CloseCode.NORMAL_CLOSURE
        finally:
            visit.is_over = True
            self.note()

    async def _talk(self, connection: ServerConnection, visit: Visit) -> None:
        for message in self.sent_at_once:
            await connection.send(message, text=True)
        while True:
            request = msgspec.json.decode(await connection.recv())
            if self._is_hushed.is_set():
                connection.transport.pause_reading()
                await connection.wait_closed()
            asked = len(visit.asked)
            for answer in self.answers(request, visit):
                await connection.send(answer, text=True)
            for message in self.sent_after_asking if len(visit.asked) > asked else []:
                await connection.send(message, text=True)
            self.note()

    async def _process(self, connection: ServerConnection, request: Request) -> Response | None:
        if self.refuses_with is not None:
            return connection.respond(self.refuses_with, "no\n")
        if "Upgrade" in request.headers:
            return None
        status, body = await self.answer(request.path)
        return connection.respond(status, body.decode())

    async def answer(self, path: str) -> tuple[HTTPStatus, bytes]:
        """To a request of the venue's REST side."""
        self.history_asked.append(path)
        self.note()
        await self.may_tell_history.wait()
        status = HTTPStatus.SERVICE_UNAVAILABLE if self.has_broken_history else HTTPStatus.OK
        return status, self.history(path)
