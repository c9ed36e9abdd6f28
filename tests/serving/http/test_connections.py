"""Which connections are let in, which are ended for others, and which are too slow."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from serving.http.bounds import RequestBody
from serving.http.connections import AddressGroups, ClientConnections
from serving.http.deadlines import ConnectionWatch, HttpTimeouts, TransferPace


class Transport:
    """Without a socket of the kernel."""

    def __init__(self, *, is_answering: bool = False) -> None:
        self.is_aborted = False
        self._protocol = SimpleNamespace(is_answering=is_answering)

    def get_extra_info(self, name: str) -> None:
        return None

    def get_protocol(self) -> object:
        return self._protocol

    def abort(self) -> None:
        self.is_aborted = True


def of_two_an_address() -> ClientConnections:
    return ClientConnections(AddressGroups("", loopback_counts=True), 2)


def arrive(
    connections: ClientConnections, host: str = "203.0.113.7", **of: bool
) -> tuple[Any, Any, Transport]:
    transport = Transport(**of)
    return (*connections.arrive(host, cast(Any, transport)), transport)


def test_an_address_has_so_many_connections_and_another_when_one_ended() -> None:
    connections = of_two_an_address()
    first, *_ = arrive(connections)
    refusals = [arrive(connections)[1], arrive(connections)[1]]
    assert [each and each.status for each in refusals] == [None, 429]
    assert arrive(connections, "198.51.100.1")[1] is None

    connections.leave(first)
    # The one that was refused counts until it has left.
    assert arrive(connections)[1].code == "too_many_connections"


def test_a_place_is_free_once_connections_have_left() -> None:
    connections = of_two_an_address()
    for _ in range(3):
        connection, refusal, _transport = arrive(connections)
        assert refusal is None
        connections.leave(connection)
        connections.leave(connection)


@pytest.mark.parametrize(
    ("known", "answering", "ended"),
    [((), (), 0), ((0,), (), 1), ((), (0,), 1), ((), (0, 1, 2), 0), ((0, 1), (2,), 2), ((0, 1, 2), (), None)],
)
def test_room_is_made_by_the_oldest_stranger_that_waits_for_nothing(
    known: tuple[int, ...], answering: tuple[int, ...], ended: int | None
) -> None:
    connections = ClientConnections(AddressGroups("", loopback_counts=True), 100)
    arrived = [arrive(connections, is_answering=number in answering) for number in range(3)]
    for number in known:
        arrived[number][0].is_known = True

    assert connections.make_room() == (ended is not None)
    assert [number for number in range(3) if arrived[number][2].is_aborted] == (
        [] if ended is None else [ended]
    )


@pytest.mark.parametrize(
    ("host", "group"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::", "2001:db8:1:2::/64"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("fe80::1%eth0", "fe80::/64"),
        ("10.1.2.3", ""),
        ("192.0.2.1", ""),
        ("127.0.0.1", ""),
        ("::1", ""),
        ("", ""),
        ("socket", ""),
    ],
)
def test_whose_connections_count_together(host: str, group: str) -> None:
    assert AddressGroups("10.0.0.0/8, 192.0.2.1, proxy.internal", loopback_counts=False).of(host) == group


def test_loopback_counts_where_that_is_wanted_and_nobody_where_every_proxy_is_trusted() -> None:
    assert AddressGroups("", loopback_counts=True).of("127.0.0.1") == "127.0.0.1"
    assert AddressGroups("*", loopback_counts=True).of("203.0.113.7") == ""


class Clock:
    """A loop of which only the time matters."""

    def __init__(self) -> None:
        self.now = 0.0
        self.next: Callable[[], None] | None = None

    def time(self) -> float:
        return self.now

    def call_later(self, seconds: float, call: Callable[[], None]) -> object:
        self.next = call
        return object()

    def look_for(self, seconds: float, every_s: float) -> None:
        until = self.now + seconds
        while self.now < until:
            self.now += every_s
            call, self.next = self.next, None
            assert call is not None
            call()


class Sender:
    """A client that sends nothing of its body."""

    def __init__(self, *, is_paused: bool) -> None:
        self.flow = SimpleNamespace(read_paused=is_paused)
        self.body = RequestBody(100, 1000)
        self.refused: list[int] = []

    def refuse(self, refusal: Any) -> None:
        self.refused.append(refusal.status)


@pytest.mark.parametrize(("is_paused", "refused"), [(False, 408), (True, None)])
def test_a_body_is_too_slow_only_while_it_is_asked_for(is_paused: bool, refused: int | None) -> None:
    clock, limits = Clock(), HttpTimeouts()
    watch = ConnectionWatch(cast(Any, clock), limits)
    connection, _ = watch.arrived("203.0.113.7", cast(Any, Transport()))
    sender = Sender(is_paused=is_paused)
    watch.bodies[cast(Any, sender)] = TransferPace(clock.now)

    clock.look_for(2 * limits.grace_s, limits.look_every_s)
    sender.flow.read_paused = False
    clock.look_for(limits.grace_s / 2, limits.look_every_s)

    assert sender.refused[:1] == ([] if refused is None else [refused])
    watch.left(connection)
    clock.look_for(limits.look_every_s, limits.look_every_s)
    assert clock.next is None
