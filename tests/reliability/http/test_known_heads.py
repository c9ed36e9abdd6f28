"""Row 38 on the short path, which answers heads that it remembers: nobody hears what another asked for, and
both ways refuse alike."""

from __future__ import annotations

import asyncio
import itertools
import re
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

import pytest

from core.contract.answers import Body
from serving.http.bounds import END_OF_HEAD
from serving.http.closing import ANSWERING, BODY
from serving.http.protocol import HttpProtocol
from tests.client import Server
from tests.contract.ways.servers import OrdinaryServer
from tests.factories import make_account, make_instrument, make_key, make_tier, put_quote
from tests.patience import PATIENCE_S, until
from tests.reliability.fixtures import Tell
from tests.serving.http.conversations import WrittenTo

from .front_proxies import haproxy, nginx
from .known_heads import FIRST, HIDDEN, LAST, SYMBOLS, Attack, attacks, quote
from .smuggling import CASES, TWO_ANSWERS, hear

Front = Callable[[Path, int], AbstractContextManager[int]]
LENGTH = re.compile(rb"\r\ncontent-length: (\d+)", re.I)
SYMBOL = re.compile(r'^\{"symbol":"(\w+)"')
BESIDE = 3
CLOSE = b"Connection: close"


class Counting(HttpProtocol):
    shortly: ClassVar[int] = 0

    def answer(self, ready: bytes, head: bytes, content: Body) -> None:
        Counting.shortly += 1
        super().answer(ready, head, content)


class Wire(WrittenTo):
    """What lies between a client and its protocol, where the test cuts instead of the network."""

    protocol: asyncio.BaseProtocol
    numbers = itertools.count()

    def __init__(self) -> None:
        super().__init__()
        # Each client from elsewhere: of one address only so many refusals are answered in a minute.
        number = next(self.numbers)
        self._peer = f"127.1.{number >> 8}.{number & 255}", 1

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._peer if name == "peername" else super().get_extra_info(name, default)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self.protocol

    def is_closing(self) -> bool:
        return self.has_ended

    def abort(self) -> None:
        self.has_ended = True

    def write_eof(self) -> None:
        """What comes is still read."""


async def converse(server: Server, parts: Sequence[bytes]) -> bytes:
    """All that is said to these parts: each comes once what was before it has been dealt with."""
    wire, protocol = Wire(), server.make_protocol()
    wire.set_protocol(protocol)
    protocol.connection_made(wire)
    for part in parts:
        if part != TWO_ANSWERS and not wire.is_closing():
            wire.protocol.data_received(part)  # type: ignore[attr-defined]
            await until(lambda: wire.is_closing() or not is_at_work(protocol))
    wire.protocol.connection_lost(None)
    return b"".join(wire.writes)


def is_at_work(protocol: Any) -> bool:
    """Whether it does more without hearing more."""
    if protocol.state == BODY:
        return not (protocol.cycle.response_complete or protocol.cycle.message_event._waiters)
    return bool(protocol.state == ANSWERING)


@pytest.fixture
def key(transactional_db: None) -> str:
    for symbol in SYMBOLS:
        make_instrument(symbol)
    return make_key(make_account(tier=make_tier("roomy", requests_per_minute=100_000)))


@contextmanager
def quoting(server: Server) -> Iterator[Server]:
    with server:
        for number, symbol in enumerate(SYMBOLS, 1):
            put_quote(symbol, number, number + 0.5)
        yield server


def told(heard: bytes) -> list[str]:
    """Of each answer the symbol, or its status where it has none."""
    answers = []
    while heard:
        head, _, rest = heard.partition(END_OF_HEAD)
        found = LENGTH.search(head)
        size = int(found[1]) if found else 0
        status, body, heard = head[9:12].decode(), rest[:size].decode(), rest[size:]
        symbol = SYMBOL.match(body)
        if status != "100":
            answers.append(symbol[1] if symbol else status)
    return answers


def remember(ask: Callable[[list[bytes]], bytes], key: str) -> None:
    """Each head twice, so that the server knows it."""
    every = b"".join(quote(symbol, key) for symbol in SYMBOLS)
    for _ in range(2):
        assert told(ask([every, quote(LAST, key, CLOSE)])) == [*SYMBOLS, LAST]


def conversations(key: str) -> dict[str, Attack]:
    """Besides those on known heads the other cases of the row, behind one."""
    others = {
        name: Attack([quote(FIRST, key) + case.parts[0], *case.parts[1:]]) for name, case in CASES.items()
    }
    return others | attacks(key)


def heard_by(server: Server, key: str, attacks: dict[str, Attack]) -> dict[str, list[str]]:
    def ask(parts: list[bytes]) -> bytes:
        return server.run(converse(server, parts))

    remember(ask, key)
    return {name: told(ask([*attack.parts, quote(LAST, key, CLOSE)])) for name, attack in attacks.items()}


@pytest.mark.row(
    "38", "with remembered request heads: no desynchronization when asked directly; both paths refuse alike"
)
def test_no_remembered_head_can_be_hidden_inside_another_request(key: str, tell: Tell) -> None:
    wanted = conversations(key)
    with quoting(OrdinaryServer()) as server:
        ordinary = heard_by(server, key, wanted)
    Counting.shortly = 0
    with quoting(Server(http=Counting)) as server:
        short = heard_by(server, key, wanted)
    wrong = {name for name, said in short.items() if said.count(HIDDEN) != wanted[name].hidden}
    differing = {name: (said, ordinary[name]) for name, said in short.items() if said != ordinary[name]}
    tell(f"{len(short)} cases; desynchronizations: {len(wrong)}, refused differently: {len(differing)}")
    tell(f"{Counting.shortly:,} answers on the short path")
    assert {name for name, said in short.items() if said[0] != FIRST} == set()
    assert wrong == set()
    assert differing == {}
    assert Counting.shortly > len(short)


@pytest.mark.row(
    "38", "with remembered request heads: no answer reaches another client through nginx or HAProxy"
)
@pytest.mark.parametrize("front", [nginx, haproxy])
def test_no_client_behind_a_proxy_receives_what_another_asked_for(
    key: str, front: Front, tmp_path: Path, tell: Tell
) -> None:
    with (
        quoting(Server(http=Counting)) as server,
        front(tmp_path, server.port) as port,
    ):
        remember(lambda parts: hear(port, *parts), key)
        Counting.shortly = 0
        wrong = {
            name: heard
            for name, attack in conversations(key).items()
            if (heard := beside(port, key, attack)) != [[LAST]] * BESIDE
        }
        tell(f"{front.__name__}: {len(conversations(key))} attacks; desynchronizations: {len(wrong)}")
        tell(f"{Counting.shortly:,} answers on the short path")
    assert wrong == {}
    # All of those that asked beside the attacks, at least.
    assert Counting.shortly >= BESIDE * len(attacks(key))


def beside(port: int, key: str, attack: Attack) -> list[list[str]]:
    """What the next clients of the proxy hear, while the attacker is still there."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as attacker:
        attacker.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with suppress(ConnectionError):
            for part in attack.parts:
                attacker.sendall(part)
                time.sleep(0.002)
        return [told(hear(port, quote(LAST, key, CLOSE))) for _ in range(BESIDE)]


@pytest.mark.row("38", "heads that are remembered: a desync would be seen")
def test_control_an_answer_to_a_hidden_head_is_noticed(key: str) -> None:
    class Hasty(HttpProtocol):
        """Takes whatever begins a segment for a request."""

        def data_received(self, data: bytes) -> None:
            if self.knows(data):
                return
            super().data_received(data)

    with quoting(Server(http=Hasty)) as server:
        heard = heard_by(server, key, {"as a body": attacks(key)["as a body"]})
    assert HIDDEN in heard["as a body"]
