"""What the fuzz of HTTP and WebSocket begins with, conversations good and bad, and how they are altered."""

from __future__ import annotations

import random

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
