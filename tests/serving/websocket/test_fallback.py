"""Sockets of other ASGI servers, and what a connection waits at."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from serving.websocket.bounds import Gate
from serving.websocket.connection import frame
from serving.websocket.consumer import HIGH_WATER_BYTES, AsgiConnection

from .wires import Held


class Server:
    """What another ASGI server does with `send`; it waits when it is told to."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.goes = asyncio.Event()
        self.goes.set()
        self.fault: Exception | None = None

    async def send(self, event: dict[str, Any]) -> None:
        await self.goes.wait()
        if self.fault is not None:
            raise self.fault
        self.sent.append(event)

    @property
    def texts(self) -> list[str]:
        return [event["text"] for event in self.sent if event["type"] == "websocket.send"]


def make_connection() -> tuple[Server, Held, AsgiConnection]:
    server = Server()
    connection = AsgiConnection(server.send)
    return server, Held(connection), connection


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_frames_are_sent_as_texts_in_their_order_and_the_close_comes_last_and_once() -> None:
    server, held, connection = make_connection()
    connection.write(frame(b"a") + frame(b"b"))
    connection.write(frame("é".encode()))
    await settle()
    assert (server.texts, connection.waiting) == (["a", "b", "é"], 0)
    connection.close(4401, "no key", last=frame(b"bye"))
    connection.write(frame(b"late"))
    connection.close(4500)
    await settle()
    assert server.texts[3:] == ["bye"]
    assert server.sent[4:] == [{"type": "websocket.close", "code": 4401, "reason": "no key"}]
    assert held.told == ["ended"]


async def test_a_server_that_waits_makes_the_connection_pause_and_resume() -> None:
    server, held, connection = make_connection()
    server.goes.clear()
    connection.write(frame(b"x" * HIGH_WATER_BYTES))
    connection.write(frame(b"y"))
    assert held.told == ["paused"]
    server.goes.set()
    await settle()
    assert held.told == ["paused", "resumed"]
    assert len(server.texts) == 2


async def test_a_client_that_is_gone_ends_the_sending_without_a_fault() -> None:
    server, held, connection = make_connection()
    server.fault = BrokenPipeError()
    connection.write(frame(b"a"))
    await settle()
    assert held.told == ["ended"]


async def test_an_abort_sends_nothing_more() -> None:
    server, held, connection = make_connection()
    server.goes.clear()
    connection.write(frame(b"a"))
    await settle()
    connection.abort()
    server.goes.set()
    connection.write(frame(b"b"))
    await settle()
    assert (server.sent, held.told) == ([], ["ended"])


async def test_all_wait_at_a_closed_gate_and_who_gives_up_keeps_nobody_from_going_on() -> None:
    gate, passed = Gate(asyncio.get_running_loop()), []

    async def pass_through(name: str) -> None:
        await gate.wait()
        passed.append(name)

    await pass_through("first")
    gate.clear()
    gate.clear()
    impatient, *others = [asyncio.create_task(pass_through(name)) for name in "abc"]
    await asyncio.sleep(0)
    assert (gate.is_set(), passed) == (False, ["first"])
    impatient.cancel()
    gate.set()
    await asyncio.gather(*others)
    assert (gate.is_set(), passed) == (True, ["first", "b", "c"])
    with pytest.raises(asyncio.CancelledError):
        await impatient
