"""What every WebSocket client can be asked to do, written for clients that are not ours."""

from __future__ import annotations

import json
from typing import Any, Protocol

from .client import MARKET, ORDERFLOW, Frame

SIGNALS = "/ws/signals"
FIELDS = {
    MARKET: {"symbol", "bid", "ask", "spread", "time", "volume"},
    ORDERFLOW: {"symbol", "bid_volume", "ask_volume", "delta", "cumulative_delta", "price", "time"},
    SIGNALS: {"id", "user", "symbol", "direction", "entry", "stop_loss", "take_profit", "timestamp", "time"},
}
# A refusal: what is said, its code, the code and the reason of the close.
Refusal = tuple[list[str], str, int, str]


class Stranger(Protocol):
    """One socket of somebody else's client."""

    def send(self, text: str) -> None: ...
    def hear(self) -> Frame: ...
    def closed(self) -> tuple[int, str]:
        """The code and the reason with which the service ended it."""

    def leave(self) -> None: ...


class World(Protocol):
    """A service, and what happens on its market."""

    @property
    def key(self) -> str: ...
    @property
    def symbol(self) -> str: ...
    def open(self, path: str) -> Stranger: ...
    def tick(self, count: int = 1) -> None: ...
    def publish_signal(self) -> None: ...


def subscribe(socket: Stranger, world: World, **fields: Any) -> Frame:
    """As the specification shows it, and what it does not show only on request."""
    message = {"action": "subscribe", "symbols": [world.symbol], "api_key": world.key}
    socket.send(json.dumps(message | fields))
    return socket.hear()


def hears_exactly_the_fields_of_the_specification(world: World, path: str) -> None:
    socket = world.open(path)
    assert subscribe(socket, world)["type"] == "subscribed"
    if path == SIGNALS:
        world.publish_signal()
    else:
        world.tick(3)
    heard = socket.hear()
    assert set(heard) == FIELDS[path]
    assert (heard["symbol"], type(heard["time"])) == (world.symbol, int)
    socket.leave()


def refusals(world: World) -> list[Refusal]:
    bad = {"action": "subscribe", "symbols": [world.symbol], "api_key": "tw_live_nobody"}
    ping = json.dumps({"action": "ping", "api_key": world.key})
    return [
        ([json.dumps(bad)], "invalid_api_key", 4401, "invalid_api_key"),
        ([json.dumps({"action": "list"})], "invalid_api_key", 4401, "invalid_api_key"),
        (["nonsense"] * 10, "invalid_message", 4400, "invalid_message"),
        ([ping] * 60, "too_many_messages", 4413, "too_many_messages"),
    ]


def is_refused_with_code_and_reason(world: World, path: str) -> None:
    for said, code, close, reason in refusals(world):
        socket = world.open(path)
        for text in said:
            socket.send(text)
        frame = socket.hear()
        while not frame.get("fatal"):
            frame = socket.hear()
        assert (frame["error"]["code"], socket.closed()) == (code, (close, reason))


def is_ended_with_1009_by_a_message_that_is_too_big(world: World) -> None:
    socket = world.open(MARKET)
    socket.send(" " * (16 * 1024 + 1))
    assert socket.closed()[0] == 1009


def resumes_where_it_was(world: World, path: str) -> None:
    first = world.open(path)
    place = subscribe(first, world, features=["seq"])
    world.tick(3)
    last = [first.hear()["seq"] for _ in range(3)][-1]
    first.leave()
    world.tick(5)
    second = world.open(path)
    positions = {world.symbol: last}
    reply = subscribe(
        second, world, features=["seq"], resume={"epoch": place["epoch"], "positions": positions}
    )
    assert reply["recovered"] is True
    world.tick(2)
    assert [second.hear()["seq"] for _ in range(7)] == list(range(last + 1, last + 8))
    second.leave()


def is_taken_over(world: World, path: str, limit: int) -> None:
    """`limit` is what the account may open, and has not."""
    held = [world.open(path) for _ in range(limit)]
    for socket in held:
        assert subscribe(socket, world)["type"] == "subscribed"
    newcomer = world.open(path)
    refused = subscribe(newcomer, world)
    assert (refused["error"]["code"], newcomer.closed()) == (
        "stream_limit_exceeded",
        (4429, "stream_limit_exceeded"),
    )
    heir = world.open(path)
    assert subscribe(heir, world, takeover=True)["type"] == "subscribed"
    assert held[0].hear()["error"]["code"] == "taken_over"
    assert held[0].closed() == (4409, "taken_over")
    for socket in (*held[1:], heir):
        socket.leave()
