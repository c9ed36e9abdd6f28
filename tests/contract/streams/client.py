"""A client of the streams that holds one socket, as a program of a user would."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from socket import create_connection
from types import TracebackType
from typing import Any, Protocol, TypeVar

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
from websockets.sync.connection import Connection

from core.clock import now_ms
from serving.websocket.connection import WebSocketConnection
from serving.websocket.consumer import Consumer
from tests.client import Server
from tests.patience import PATIENCE_S

T = TypeVar("T")

MARKET, ORDERFLOW, CANDLES = "/ws/market", "/ws/orderflow", "/ws/candles"
LIVENESS = ("stale", "live")
Frame = dict[str, Any]


class Served(Protocol):
    """A server on loopback, in this process or another."""

    port: int


def next_frame(connection: Connection) -> Frame:
    """A process on a busy machine may stand still for seconds, and says so between two frames."""
    while (frame := json.loads(connection.recv(PATIENCE_S))).get("code") in LIVENESS:
        pass
    found: Frame = frame
    return found


class Socket:
    """`closed` is the code with which the service ended it."""

    def __init__(
        self,
        server: Served,
        path: str = MARKET,
        key: str = "",
        host: str = "127.0.0.1",
        address: str = "",
        **headers: str,
    ) -> None:
        """`address` is where it calls from."""
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        if key:
            names["X-API-Key"] = key
        self.connection = connect(
            f"ws://{host}:{server.port}{path}",
            sock=create_connection(("127.0.0.1", server.port), source_address=(address, 0)),
            additional_headers=names,
            compression=None,
            max_size=None,
            open_timeout=PATIENCE_S,
        )

    def __enter__(self) -> Socket:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.connection.close()

    def send(self, message: Any) -> None:
        self.connection.send(message if isinstance(message, str | bytes) else json.dumps(message))

    def hear(self) -> Frame:
        return next_frame(self.connection)

    def _next(self) -> Frame:
        frame: Frame = json.loads(self.connection.recv(PATIENCE_S))
        return frame

    def hear_of(self, count: int, field: str) -> list[Any]:
        return [self.hear()[field] for _ in range(count)]

    def hear_until(self, kind: str) -> Frame:
        while (frame := self._next()).get("type") != kind:
            pass
        return frame

    def hear_all(self) -> list[Frame]:
        """Until the service closes."""
        heard = []
        with suppress(ConnectionClosed):
            while True:
                heard.append(self.hear())
        return heard

    def ask(self, message: Any) -> Frame:
        """The answer without its time, which is about now."""
        self.send(message)
        return told(self.hear())

    def subscribe(self, *symbols: str, **fields: Any) -> Frame:
        named = {"symbols": list(symbols)} if symbols else {}
        return self.ask({"action": "subscribe", **named, **fields})

    def refused(self, message: Any = None) -> Frame:
        """The error that follows, with the code it says and whether it is fatal."""
        if message is not None:
            self.send(message)
        frame = told(self.hear())
        assert frame.pop("type") == "error"
        return frame

    @property
    def closed(self) -> int | None:
        with pytest.raises(ConnectionClosed):
            self.connection.recv(PATIENCE_S)
        return self.connection.close_code

    @property
    def is_open(self) -> bool:
        return bool(self.ask({"action": "ping"})["type"] == "pong")


def told(frame: Frame) -> Frame:
    assert abs(frame.pop("time") - now_ms()) < 1000 * PATIENCE_S
    return frame


def code_of(refused: Frame) -> tuple[str, bool, bool]:
    """What it is, whether it is fatal, whether to try again."""
    return refused["error"]["code"], refused["fatal"], refused["retry"]


def in_time(seconds: float, take: Callable[[float], T | None]) -> T:
    """What must be done within some seconds: with twice as many where the machine was too slow for it."""
    while seconds < PATIENCE_S:
        with suppress(ConnectionClosed):
            if (taken := take(seconds)) is not None:
                return taken
        seconds *= 2
    raise AssertionError("It was not done in time")


@contextmanager
def an_hour_passing(server: Server, session: Any) -> Iterator[None]:
    """For each that opens within: when this is left, its time to say something first is over."""
    silent, join, stay = list[Consumer](), session.join, session.stay

    def note_opened(self: Consumer, connection: WebSocketConnection) -> None:
        silent.append(self)
        join(self, connection)

    def note_heard(self: Consumer) -> None:
        if self in silent:
            silent.remove(self)
        stay(self)

    async def ring() -> None:
        for each in silent:
            stay(each)
            each.first_is_late()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "FIRST_WITHIN_S", 3600.0)
        patch.setattr(session, "join", note_opened)
        patch.setattr(session, "stay", note_heard)
        yield
    server.run(ring())


@contextmanager
def shortened(owner: object, name: str, seconds: float) -> Iterator[None]:
    """A time that is to be waited for, in less."""
    before = getattr(owner, name)
    setattr(owner, name, seconds)
    try:
        yield
    finally:
        setattr(owner, name, before)
