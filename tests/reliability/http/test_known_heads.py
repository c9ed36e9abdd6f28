"""Row 38 on the short path, which answers heads that it remembers: wherever one stands, it is a request there
or it is not, and nobody hears what another asked for. That both ways refuse alike, tests/serving/http shows.

FIRST is asked for at the beginning and LAST at the end; HIDDEN is what an attack wants to have answered."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import ClassVar, NamedTuple

import pytest

from core.contract.answers import Body
from serving.http.bounds import END_OF_HEAD
from serving.http.protocol import HttpProtocol
from tests.client import Server
from tests.factories import make_account, make_instrument, make_key, make_tier, put_quote
from tests.patience import PATIENCE_S, wait_until
from tests.reliability.fixtures import Tell

from .front_proxies import haproxy, nginx
from .smuggling import ASKS_FOR_H2C, CASES, CHUNKED, HOST, TWO_ANSWERS, chunked, hear, post, size

Front = Callable[[Path, int], AbstractContextManager[int]]
LENGTH = re.compile(rb"\r\ncontent-length: (\d+)", re.I)
SYMBOL = re.compile(r'^\{"symbol":"(\w+)"')
FIRST, HIDDEN, LAST, OTHER = "FIRST", "HIDDEN", "LAST", "OTHER"
SYMBOLS = (FIRST, HIDDEN, LAST, OTHER)
FOLDED, NUL = b"X: a\r\n b", b"X: a\0b"
BESIDE = 3
CLOSE = b"Connection: close"


class Attack(NamedTuple):
    parts: list[bytes]
    """Each in a segment of its own."""
    hidden: int = 0
    """How often HIDDEN is validly asked for."""


def quote(symbol: str, key: str, *lines: bytes, version: bytes = b"1.1") -> bytes:
    target = f"/api/market/{symbol}/quote".encode()
    keyed = HOST, b"X-API-Key: " + key.encode(), *lines
    return b"\r\n".join((b"GET " + target + b" HTTP/" + version, *keyed, b"", b""))


def attacks(key: str) -> dict[str, Attack]:
    return bodies(key) | heads(key) | orders(key)


def bodies(key: str) -> dict[str, Attack]:
    """HIDDEN is, or could be taken for, a part of a body."""
    first, hidden = quote(FIRST, key), quote(HIDDEN, key)
    other = partial(quote, OTHER, key)
    sized = size(hidden)
    return {
        "as a body": Attack([first + post(sized), hidden]),
        "as a body in the same segment": Attack([first + post(sized) + hidden]),
        "as a body in pieces": Attack([first + post(sized), hidden[:20], hidden[20:]]),
        "as the body of a GET": Attack([first + other(sized), hidden]),
        "as the body of a GET in the same segment": Attack([first + other(sized) + hidden]),
        "as a chunk": Attack([first + post(CHUNKED), chunked(hidden)]),
        "as a chunk of its own": Attack(
            [first + post(CHUNKED), b"%x\r\n" % len(hidden), hidden, b"\r\n0\r\n\r\n"]
        ),
        "as a trailer": Attack([first + post(CHUNKED), b"0\r\nX: ", hidden]),
        "as a chunk extension": Attack([first + post(CHUNKED), b"1;a=", hidden]),
        "as half of a body": Attack(
            [first + post(b"Content-Length: %d" % (2 * len(hidden))), hidden, hidden]
        ),
        "behind a body": Attack([first + post(sized) + hidden + hidden], hidden=1),
        "behind no body": Attack([first + other(b"Content-Length: 0") + hidden], hidden=1),
        "behind a body that was not told": Attack([first + b"body", hidden]),
        "in a body beyond the limit": Attack([first + other(b"Content-Length: 100000000"), hidden]),
        "CL.TE": Attack([first + post(b"Content-Length: 6", CHUNKED), b"0\r\n\r\n" + hidden]),
        "TE.CL": Attack([first + post(CHUNKED, b"Content-Length: 4"), chunked(hidden)]),
        "CL.TE on a known target": Attack(
            [first + other(b"Content-Length: 6", CHUNKED), b"0\r\n\r\n" + hidden]
        ),
        "two lengths": Attack([first + other(b"Content-Length: 0", sized), hidden]),
        "length with a sign": Attack([first + other(b"Content-Length: +0"), hidden]),
        "a coding that there is not": Attack([first + other(b"Transfer-Encoding: x"), hidden]),
        "chunked, behind a tab": Attack([first + other(b"Transfer-Encoding:\tx,chunked"), hidden]),
    }


def heads(key: str) -> dict[str, Attack]:
    """HIDDEN stands within, or right behind, a head that is none or has not ended."""
    first, hidden = quote(FIRST, key), quote(HIDDEN, key)
    other = partial(quote, OTHER, key)
    return {
        "behind half a line": Attack([first + b"GET /api/outer HTTP/1.1\r\nX: ", hidden]),
        "behind half a first line": Attack([first + b"GET /api/outer?", hidden]),
        "behind a letter": Attack([first + b"G", hidden]),
        "behind a line feed": Attack([first + b"\n", hidden], hidden=1),
        "behind a blank line": Attack([first + b"\r\n", hidden], hidden=1),
        "behind NUL": Attack([first + b"\0", hidden]),
        "behind a folded header": Attack([first + other(FOLDED), hidden]),
        "behind NUL in a header": Attack([first + other(NUL), hidden]),
        "behind two hosts": Attack([first + other(HOST) + hidden], hidden=1),
        "behind lines that end with LF": Attack([first + other().replace(b"\r\n", b"\n"), hidden]),
        "behind an end of LF LF": Attack([first + other()[:-4] + b"\n\n" + hidden]),
        "behind an end of CR LF LF": Attack([first + other()[:-4] + b"\r\n\n" + hidden]),
        "behind an end of CR": Attack([first + other()[:-2] + b"\r" + hidden]),
        "behind a huge head": Attack([first + other(b"X: " + b"a" * 33_000) + hidden]),
        "behind many headers": Attack([first + other(*[b"a: b"] * 120) + hidden]),
        "behind another version": Attack([first + other(version=b"2.0") + hidden]),
        "byte by byte": Attack([first, *(bytes([each]) for each in hidden)], hidden=1),
        "in two parts": Attack([first + hidden[:40], hidden[40:]], hidden=1),
        "cut in its end": Attack([first + hidden[:-1], hidden[-1:]], hidden=1),
    }


def orders(key: str) -> dict[str, Attack]:
    """HIDDEN stands behind requests of other ways, or behind the end."""
    first, hidden = quote(FIRST, key), quote(HIDDEN, key)
    other = partial(quote, OTHER, key)
    page = b"GET /accounts/login/ HTTP/1.1\r\n" + HOST + b"\r\n\r\n"
    return {
        "behind a page": Attack([first + page + hidden], hidden=1),
        "between pages": Attack([first + page + hidden + page + other()], hidden=1),
        "behind a page, apart": Attack([first + page, hidden, other()], hidden=1),
        "behind many": Attack([first + other() * 200 + hidden], hidden=1),
        "behind a new head": Attack([first + other(b"X: new") + hidden], hidden=1),
        "behind the last": Attack([first + other(CLOSE), hidden]),
        "behind the last, at once": Attack([first + other(CLOSE) + hidden]),
        "behind HTTP/1.0": Attack([first + other(version=b"1.0"), hidden]),
        "behind an upgrade": Attack([first + other(ASKS_FOR_H2C), hidden]),
        "behind an upgrade of its own segment": Attack([first, other(ASKS_FOR_H2C), hidden]),
        "behind what waits to be asked": Attack(
            [first + post(b"Expect: 100-continue", size(hidden)), TWO_ANSWERS, hidden]
        ),
    }


class Counting(HttpProtocol):
    shortly: ClassVar[int] = 0

    def answer(self, ready: bytes, head: bytes, content: Body) -> None:
        Counting.shortly += 1
        super().answer(ready, head, content)


class Hasty(HttpProtocol):
    """Takes whatever begins a segment for a request."""

    def data_received(self, data: bytes) -> None:
        if self.knows(data):
            return
        super().data_received(data)


@pytest.fixture
def key(transactional_db: None) -> str:
    for symbol in SYMBOLS:
        make_instrument(symbol)
    return make_key(make_account(tier=make_tier("roomy", requests_per_minute=100_000)))


@contextmanager
def quoting(protocol: type[HttpProtocol]) -> Iterator[Server]:
    with Server(http=protocol) as server:
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


def ask(port: int, key: str, *parts: bytes) -> list[str]:
    return told(hear(port, *parts, quote(LAST, key, CLOSE)))


def remember(port: int, key: str) -> None:
    """Each head twice, so that the server knows it."""
    every = b"".join(quote(symbol, key) for symbol in SYMBOLS)
    for _ in range(2):
        assert ask(port, key, every) == [*SYMBOLS, LAST]
    Counting.shortly = 0


def conversations(key: str) -> dict[str, Attack]:
    """Besides those on known heads the other cases of the row, behind one."""
    others = {
        name: Attack([quote(FIRST, key) + case.parts[0], *case.parts[1:]]) for name, case in CASES.items()
    }
    return others | attacks(key)


@pytest.mark.row("38", "with remembered request heads: no desynchronization when asked directly")
def test_no_remembered_head_can_be_hidden_inside_another_request(key: str, tell: Tell) -> None:
    wanted = conversations(key)
    with quoting(Counting) as server:
        remember(server.port, key)
        heard = {name: ask(server.port, key, *attack.parts) for name, attack in wanted.items()}
    wrong = {name for name, said in heard.items() if said.count(HIDDEN) != wanted[name].hidden}
    tell(f"{len(heard)} cases; desynchronizations: {len(wrong)}")
    tell(f"{Counting.shortly:,} answers on the short path")
    assert {name for name, said in heard.items() if said[0] != FIRST} == set()
    assert wrong == set()
    assert Counting.shortly > len(heard)


@pytest.mark.row(
    "38", "with remembered request heads: no answer reaches another client through nginx or HAProxy"
)
@pytest.mark.parametrize("front", [nginx, haproxy])
def test_no_client_behind_a_proxy_receives_what_another_asked_for(
    key: str, front: Front, tmp_path: Path, tell: Tell
) -> None:
    with quoting(Counting) as server, front(tmp_path, server.port) as port:
        remember(port, key)
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
        return [ask(port, key) for _ in range(BESIDE)]


@pytest.mark.row("38", "heads that are remembered: a desync would be seen")
def test_control_an_answer_to_a_hidden_head_is_noticed(key: str) -> None:
    with quoting(Hasty) as server:
        remember(server.port, key)
        wait_until(lambda: HIDDEN in ask(server.port, key, *attacks(key)["as a body"].parts))
