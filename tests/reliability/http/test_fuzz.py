"""Bytes that are nearly HTTP or WebSocket, from conversations good and bad: no unhandled exception, no hang,
no descriptor left."""

from __future__ import annotations

import errno
import random
import socket
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress

import pytest

from tests.patience import wait_until
from tests.reliability.clients.measures import descriptors
from tests.reliability.clients.strangers import ask, connect
from tests.reliability.fixtures import Tell
from tests.reliability.services.processes import Installation, Process
from tests.serving.websocket.wires import CLOSE, PING, TEXT, handshake, masked

from .smuggling import CASES, WHOLE, get, post

SUBSCRIBE = b'{"action": "subscribe", "symbols": ["FUZZED"], "api_key": "x"}'
STREAM = handshake(path="/ws/market")
FORM = b"Content-Type: application/x-www-form-urlencoded"
CORPUS = [b"".join(case.parts) for case in CASES.values()] + [
    get(target=b"/api/market/FUZZED/quote"),
    get(target=b"/api/market/FUZZED?timeframe=1m&bars=3"),
    get(b"Cookie: sessionid=x; csrftoken=y", target=b"/accounts/login/"),
    post(FORM, b"Content-Length: 3", target=b"/accounts/login/") + b"a=b",
    post(b"X-Ingest-Key: x", b"Content-Length: 2", target=b"/ingest/ticks") + b"{}",
    post(b"Content-Length: 11", target=b"/page-token") + b"hello world",
    get(target=b"/static/tickwire.css").replace(b"GET", b"HEAD"),
    WHOLE * 3,
    STREAM + masked(TEXT, SUBSCRIBE) + masked(PING, b"x") + masked(CLOSE, b"\x03\xe8"),
    STREAM + masked(TEXT, SUBSCRIBE[:20], fin=False) + masked(0x0, SUBSCRIBE[20:]),
    handshake(path="/ws/ingest") + masked(TEXT, b'{"action": "auth", "key": "x"}'),
    handshake(path="/ws/nothing"),
]
TOKENS = (
    *(b"\r\n", b"\n", b"\r", b"\0", b":", b" ", b"\t", b"%", b"%00", b"\xff", b"HTTP/1.1", b"GET "),
    *(b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"Expect: 100-continue\r\n"),
    *(b"Connection: Upgrade\r\n", b"Upgrade: websocket\r\n", b"Host: evil\r\n"),
    *(b"0\r\n\r\n", b"ffffffffffffffff\r\n", b"9" * 30, b"a" * 9_000, b"a:b\r\n" * 120),
)


def with_known_heads(key: bytes) -> list[bytes]:
    """Conversations that begin with heads which the server remembers and answers on the short path."""
    known = get(b"X-API-Key: " + key, target=b"/api/symbols")
    return [known * 2 + conversation for conversation in (known, known[:-2], *CORPUS)]


def altered(chance: random.Random, corpus: list[bytes] = CORPUS) -> bytes:
    """One conversation of the corpus, changed in a few places."""
    data = bytearray(chance.choice(corpus))
    for _ in range(chance.randint(0, 4)):
        at = chance.randint(0, len(data))
        match chance.randint(0, 5):
            case 0:
                data[at:at] = chance.choice(TOKENS)
            case 1:
                del data[at : at + chance.randint(1, 20)]
            case 2:
                data[at : at + 1] = chance.randbytes(1)
            case 3:
                data[at:at] = data[chance.randint(0, at) : at]
            case 4:
                other = chance.choice(corpus)
                data[at:] = other[chance.randint(0, len(other)) :]
            case 5:
                data[at:at] = chance.randbytes(chance.randint(1, 30))
    return bytes(data)


def in_segments(data: bytes, chance: random.Random) -> list[bytes]:
    cuts = sorted(chance.randint(0, len(data)) for _ in range(chance.randint(0, 3)))
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True) if start < end]


ROUNDS, PROBE_EVERY = 12, 50
# What the service opens for itself meanwhile: its database, for one.
SPARE_FILES = 20


@pytest.fixture(scope="module")
def key(embedded_for_module: Installation) -> bytes:
    return embedded_for_module.make_key(requests_per_minute=1_000_000).encode()


@pytest.fixture(scope="module")
def server(embedded_for_module: Installation, key: bytes) -> Iterator[Process]:
    with embedded_for_module.web_process(LOG_LEVEL="WARNING") as running:
        yield running


def say(server: Process, segments: list[bytes], stays: bool) -> int:
    """The status of the first answer, 0 if there is none; it does not wait for more."""
    heard = b""
    with connect(server.port) as client, suppress(ConnectionError):
        for segment in segments:
            client.sendall(segment)
        if not stays:
            end_sending(client)
            heard = client.recv(65536)
    return int(heard[9:12]) if heard[:5] == b"HTTP/" else 0


def end_sending(client: socket.socket) -> None:
    try:
        client.shutdown(socket.SHUT_WR)
    except OSError as error:
        # The server has reset it: Linux calls that something else here than in `recv`.
        if error.errno != errno.ENOTCONN:
            raise


@pytest.mark.row("17, 38", "no unhandled exception, no hang, no file descriptor left open")
@pytest.mark.parametrize("is_known", [False, True], ids=["of strangers", "behind known heads"])
def test_almost_valid_bytes_break_nothing(
    server: Process, key: bytes, is_known: bool, seed: int, tell: Tell
) -> None:
    heard = breaks_nothing(server, with_known_heads(key) if is_known else CORPUS, seed, range(ROUNDS))
    tell(f"{heard.total()} conversations, first answers {dict(sorted(heard.items()))}")


def breaks_nothing(server: Process, corpus: list[bytes], seed: int, rounds: Iterable[int]) -> Counter[int]:
    """The first answers to so many rounds of conversations."""
    chance, heard = random.Random(seed), Counter[int]()
    with connect(server.port) as client:
        assert ask(client) == 200
    before = len(descriptors(server.pid))
    for _ in rounds:
        for _ in range(PROBE_EVERY):
            heard[say(server, in_segments(altered(chance, corpus), chance), chance.random() < 0.2)] += 1
        # Others are served all the while.
        with connect(server.port) as client:
            assert ask(client) == 200
    wait_until(lambda: len(descriptors(server.pid)) <= before + SPARE_FILES)
    said = server.log.read_text()
    assert heard[500] == 0
    assert "Traceback" not in said, said[said.find("Traceback") - 300 :][:3000]
    assert "could not be" not in said
    return heard
