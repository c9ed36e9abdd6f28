"""The short way, the ordinary way and daphne give the same answer, byte for byte."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import time_machine

from serving.http.bounds import END_OF_HEAD
from serving.http.protocol import HttpProtocol
from tests.contract.streams.conftest import forget_redis
from tests.contract.streams.daphne_server import DaphneServer
from tests.factories import (
    NOON,
    make_account,
    make_calendar,
    make_instrument,
    make_key,
    make_tier,
    put_candles,
    put_quote,
)

from .doors import Door, Talk, ordinary_door, short_door
from .requests import ASKED, QUOTE, Asked, get

NOON_MS = round(NOON.timestamp() * 1000)
MINUTE_MS = 60_000
Doors = tuple[Door, Door, Door]
TIMES = 3
"""At first the head is new, then remembered."""

# Each answer has an id of its own, and the clock that frees slots goes on.
VARYING = {
    rb"req_[a-z2-7]{16}": b"ID",
    rb"(?i)(x-ratelimit-reset|retry-after): \d+": rb"\1: N",
    rb"(?i)(ratelimit: [^\r]*;t=)\d+": rb"\1N",
    rb"Try again in \d+ s": b"Try again in N s",
    rb'"reset":\d+': b'"reset":N',
}
# daphne says no date, its own name behind the others, capitals in names, and no reason for a 429.
SERVERS_OWN = re.compile(rb"(?i)\r\n(date|server): [^\r]*|(?<=^HTTP/1.1 \d{3}) [^\r]*")
NAME = re.compile(rb"(?<=\r\n)[^:\r]+:")


class Planted(HttpProtocol):
    """Whose short way says something else in one header."""

    def answer(self, head: bytes, content: tuple[bytes, ...]) -> None:
        super().answer(head.replace(b"no-store", b"no-cache"), content)


class Visitor:
    """Asks at one door, with keys of its own: each account counts for itself."""

    def __init__(self, door: Door, requests_per_minute: int = 100_000) -> None:
        self.door = door
        tier = make_tier("roomy", requests_per_minute=requests_per_minute)
        self._account = make_account(tier=tier)
        self._names = {
            b"{key}": make_key(self._account).encode(),
            b"{demo}": make_key(make_account(tier=tier, is_demo=True)).encode(),
            b"{revoked}": make_key(self._account, revoked_at=NOON).encode(),
        }
        self.talk = Talk(door)
        # From now on its key is known.
        self.ask(get(b"/api/limits"))

    def ask(self, asked: Asked) -> bytes:
        head = asked.head
        for name, value in self._names.items():
            head = head.replace(name, value)
        return settled(self.talk.ask(head))

    def ask_again(self, asked: Asked) -> list[bytes]:
        return [self.ask(asked) for _ in range(TIMES)]

    def close(self) -> None:
        self.talk.close()


def settled(answer: bytes) -> bytes:
    """Without what is another each time."""
    for pattern, text in VARYING.items():
        answer = re.sub(pattern, text, answer)
    return answer


def plainly(answer: bytes) -> bytes:
    """Without what servers say of themselves."""
    head, end, body = answer.partition(END_OF_HEAD)
    return NAME.sub(lambda found: found[0].lower(), SERVERS_OWN.sub(b"", head)) + end + body


@pytest.fixture(scope="module")
def server(db: None) -> Iterator[DaphneServer]:
    forget_redis()
    with time_machine.travel(NOON, tick=False), DaphneServer() as running:
        make_instrument("EURUSD")
        make_instrument("QUIET")
        make_instrument("GONE", calendar=make_calendar("never"), active=False)
        put_candles("EURUSD", "1m", [NOON_MS - number * MINUTE_MS for number in (3, 2, 1)])
        put_candles("EURUSD", "1h", [NOON_MS - 60 * MINUTE_MS])
        put_quote("EURUSD", at_ms=NOON_MS)
        yield running


@pytest.fixture(scope="module")
def doors(server: DaphneServer) -> Iterator[Doors]:
    with short_door(server) as short, ordinary_door(server) as ordinary:
        yield short, ordinary, Door(server.port)


@pytest.fixture
def visitors(doors: Doors) -> Iterator[list[Visitor]]:
    visitors = [Visitor(door) for door in doors]
    yield visitors
    for visitor in visitors:
        visitor.close()


@pytest.mark.parametrize("name", ASKED)
def test_answer_is_the_same_in_both_ways_and_on_daphne(visitors: list[Visitor], name: str) -> None:
    short, ordinary, daphne = visitors
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


def test_control_another_value_of_one_header_is_seen(server: DaphneServer) -> None:
    with short_door(server, Planted) as planted, ordinary_door(server) as plain:
        first, second = Visitor(planted), Visitor(plain)
        differing = [name for name in ASKED if first.ask_again(ASKED[name]) != second.ask_again(ASKED[name])]
        first.close()
        second.close()
    assert differing == [name for name, asked in ASKED.items() if asked.is_short]


def test_who_is_over_the_limit_is_refused_alike(server: DaphneServer) -> None:
    with short_door(server) as one, ordinary_door(server) as other:
        visitors = [Visitor(door, 3) for door in (one, other, Door(server.port))]
        short, ordinary, daphne = ([visitor.ask(get()) for _ in range(6)] for visitor in visitors)
        for visitor in visitors:
            visitor.close()
    assert [answer.split(b" ")[1] for answer in ordinary] == [b"200"] * 3 + [b"429"] * 3
    assert short == ordinary
    assert list(map(plainly, daphne)) == list(map(plainly, ordinary))
    assert one.heard == ["/api/limits"] + [QUOTE.decode()] * 3
