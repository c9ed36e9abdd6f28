"""The short path, the ordinary path and daphne give the same answer, byte for byte."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from accounts.limits import throttle
from core.contract.answers import Body
from serving.http.protocol import HttpProtocol
from tests.contract.conftest import forget_redis
from tests.contract.streams.daphne_server import DaphneServer

from .conftest import Doors
from .doors import Talk, ordinary_door, short_door
from .requests import ASKED, PLAIN, QUOTE, get
from .visitors import TIMES, Visitor, plainly


@pytest.fixture(scope="module")
def known(doors: Doors) -> list[Visitor]:
    return [Visitor(door) for door in doors]


@pytest.fixture
def guests(known: list[Visitor]) -> Iterator[list[Visitor]]:
    """Who is known already and has asked for nothing, on a connection and from an address of its own."""
    forget_redis()
    throttle.window.admitted.clear()
    with ExitStack() as stack:
        for visitor in known:
            visitor.talk.close()
            visitor.talk = Talk(visitor.door)
        yield [stack.enter_context(visitor) for visitor in known]


class Planted(HttpProtocol):
    """Whose short path says something else in one header."""

    def answer(self, ready: bytes, head: bytes, content: Body) -> None:
        super().answer(ready.replace(b"no-store", b"no-cache"), head, content)


@pytest.mark.parametrize("name", ASKED)
def test_answer_is_the_same_in_both_ways_and_on_daphne(guests: list[Visitor], name: str) -> None:
    short, ordinary, daphne = guests
    asked, heard = ASKED[name], (len(short.door.heard), len(ordinary.door.heard))
    said = ordinary.ask_again(asked)
    assert short.ask_again(asked) == said
    # A head that is refused by the server itself reaches the application in neither way.
    reached = len(ordinary.door.heard) - heard[1]
    assert len(short.door.heard) - heard[0] == (0 if asked.is_short else reached)
    if asked.is_short:
        assert reached == TIMES
    if not asked.on_daphne:
        assert list(map(plainly, daphne.ask_again(asked))) == list(map(plainly, said))


@pytest.mark.parametrize("said", ["http", "HTTP , https", "https", "https, http", "ws", ""])
def test_key_that_crossed_the_network_in_the_clear_is_refused_alike(
    visitors: list[Visitor], settings: Any, said: str
) -> None:
    settings.PRODUCTION = True
    asked = get(QUOTE, *PLAIN, b"X-Forwarded-Proto: " + said.encode())
    short, ordinary, daphne = (visitor.ask_again(asked) for visitor in visitors)
    is_plain = said.lower().startswith(("http ", "ws")) or said == "http"
    assert [answer.split(b" ")[1] for answer in ordinary] == [b"403" if is_plain else b"200"] * TIMES
    assert short == ordinary
    assert list(map(plainly, daphne)) == list(map(plainly, ordinary))


def test_control_another_value_of_one_header_is_seen(server: DaphneServer) -> None:
    with (
        short_door(server, Planted) as planted,
        ordinary_door(server) as plain,
        Visitor(planted) as first,
        Visitor(plain) as second,
    ):
        differing = [name for name in ASKED if first.ask_again(ASKED[name]) != second.ask_again(ASKED[name])]
    assert differing == [name for name, asked in ASKED.items() if asked.is_short]


def test_who_is_over_the_limit_is_refused_alike(doors: Doors) -> None:
    with Visitor(doors[0], 5) as one, Visitor(doors[1], 5) as other:
        together = one.ask_together(*[get()] * 8)
        assert together == other.ask_together(*[get()] * 8)
    assert [together.count(b"HTTP/1.1 " + status) for status in (b"200", b"429")] == [5, 3]
    heard = len(doors[0].heard)
    with ExitStack() as stack:
        visitors = [stack.enter_context(Visitor(door, 3)) for door in doors]
        short, ordinary, daphne = ([visitor.ask(get()) for _ in range(6)] for visitor in visitors)
    assert [answer.split(b" ")[1] for answer in ordinary] == [b"200"] * 3 + [b"429"] * 3
    assert short == ordinary
    assert list(map(plainly, daphne)) == list(map(plainly, ordinary))
    assert doors[0].heard[heard:] == ["/api/limits"] * 2 + [QUOTE.decode()] * 3
