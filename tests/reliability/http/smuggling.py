"""Requests that two servers might read differently: what one takes for the body, the other for a request.

Whoever is led astray answers the hidden request, to this client or to the next one."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from typing import NamedTuple

from tests.patience import PATIENCE_S

HOST = b"Host: 127.0.0.1"
# Answered without a key: with 401, 200 and 204, so that the numbers say who was answered.
OUTER, HIDDEN_PATH = b"/api/outer", b"/healthz"
# Without its end: the next request on the connection becomes a header of this one.
HIDDEN = b"GET " + HIDDEN_PATH + b" HTTP/1.1\r\nX: "
WHOLE = b"GET " + HIDDEN_PATH + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
NEXT = b"OPTIONS /api/next HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
NEXT_STATUS = 204

BROKEN = "its head was answered or not, and nothing else was"
REFUSED, ENDED, GOES_ON = "refused", "answered, then closed", "answered, and what is next too"
REFUSED_AFTER, PIPELINED = "answered, then refused", "answered, and what was validly pipelined"


class Case(NamedTuple):
    parts: tuple[bytes, ...]
    """Each in a segment of its own."""
    fate: str
    status: int = 400
    """Of the refusal, where it is one."""


def post(*headers: bytes, version: bytes = b"1.1", method: bytes = b"POST", target: bytes = OUTER) -> bytes:
    return b"\r\n".join((method + b" " + target + b" HTTP/" + version, HOST, *headers, b"", b""))


def get(*headers: bytes, version: bytes = b"1.1", target: bytes = OUTER) -> bytes:
    return post(*headers, version=version, method=b"GET", target=target)


def size(of: bytes) -> bytes:
    return b"Content-Length: %d" % len(of)


def chunked(body: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    return b"%x\r\n%s\r\n%s" % (len(body), body, end)


CHUNKED = b"Transfer-Encoding: chunked"
SHORT = b"Content-Length: 4"
ASKS_FOR_X = b"Connection: Upgrade\r\nUpgrade: x"
ASKS_FOR_H2C = (
    b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA"
)
ASKS_FOR_SOCKET = b"Connection: Upgrade\r\nUpgrade: websocket"
SOCKET = ASKS_FOR_SOCKET + (b"\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13")

UPGRADES = {
    "upgrade with a body": Case((post(ASKS_FOR_X, size(HIDDEN)), HIDDEN), REFUSED),
    "upgrade with a body in chunks": Case((post(ASKS_FOR_X, CHUNKED), chunked(HIDDEN)), REFUSED),
    "h2c with a body": Case((post(ASKS_FOR_H2C, size(HIDDEN)), HIDDEN), REFUSED),
    "GET upgrade with a body": Case((get(ASKS_FOR_X, size(HIDDEN)), HIDDEN), REFUSED),
    "WebSocket with a body": Case((get(SOCKET, size(HIDDEN)), HIDDEN), REFUSED),
    "WebSocket with a body in chunks": Case((get(SOCKET, CHUNKED), chunked(HIDDEN)), REFUSED),
    "WebSocket by POST": Case((post(SOCKET), HIDDEN), REFUSED),
    "WebSocket in HTTP/1.0": Case((get(SOCKET, version=b"1.0"), HIDDEN), REFUSED),
    "WebSocket of another version": Case((get(SOCKET.replace(b"13", b"12")), HIDDEN), REFUSED, 426),
    "WebSocket without a key": Case((get(ASKS_FOR_SOCKET, b"Sec-WebSocket-Version: 13"), HIDDEN), REFUSED),
    "WebSocket with a short key": Case(
        (get(SOCKET.replace(b"dGhlIHNhbXBsZSBub25jZQ==", b"c2hvcnQ=")), HIDDEN), REFUSED
    ),
    "h2c, then more": Case((get(ASKS_FOR_H2C), HIDDEN), ENDED),
    "h2c and more at once": Case((get(ASKS_FOR_H2C) + WHOLE,), ENDED),
    "two upgrades, then more": Case((get(ASKS_FOR_H2C, b"Upgrade: websocket"), HIDDEN), ENDED),
    "list of upgrades, then more": Case(
        (get(b"Connection: upgrade\r\nUpgrade: h2c, websocket"), HIDDEN), ENDED
    ),
    "WebSocket behind a request in flight": Case((get() + get(SOCKET) + WHOLE,), REFUSED_AFTER),
    "CONNECT": Case((get(target=b"127.0.0.1:80").replace(b"GET", b"CONNECT"), HIDDEN), REFUSED),
}
LENGTHS = {
    "CL.TE": Case((post(b"Content-Length: 6", CHUNKED), b"0\r\n\r\n" + HIDDEN), REFUSED),
    "TE.CL": Case((post(CHUNKED, SHORT), chunked(HIDDEN)), REFUSED),
    "two lengths": Case((post(b"Content-Length: 0", size(HIDDEN)), HIDDEN), REFUSED),
    "the same length twice": Case((post(size(HIDDEN), size(HIDDEN)), HIDDEN), REFUSED),
    "list of lengths": Case((post(b"Content-Length: 0, %d" % len(HIDDEN)), HIDDEN), REFUSED),
    "length with a sign": Case((post(b"Content-Length: +0"), HIDDEN), REFUSED),
    "negative length": Case((post(b"Content-Length: -1"), HIDDEN), REFUSED),
    "hexadecimal length": Case((post(b"Content-Length: 0x0"), HIDDEN), REFUSED),
    "length with a space in it": Case((post(b"Content-Length: 0 4"), HIDDEN), REFUSED),
    "length of 2**64": Case((post(b"Content-Length: 18446744073709551616"), HIDDEN), REFUSED),
    "empty length": Case((post(b"Content-Length:"), HIDDEN), REFUSED),
    "length with an underscore": Case((post(b"Content_Length: 4"),), GOES_ON),
}
CODINGS = {
    f"Transfer-Encoding {name}": Case((post(*headers, SHORT), chunked(HIDDEN)), REFUSED)
    for name, headers in {
        "xchunked": (b"Transfer-Encoding: xchunked",),
        "chunked, identity": (b"Transfer-Encoding: chunked, identity",),
        "identity, chunked": (b"Transfer-Encoding: identity, chunked",),
        "twice": (CHUNKED, b"Transfer-Encoding: x"),
        "in quotes": (b'Transfer-Encoding: "chunked"',),
        "behind a vertical tab": (b"Transfer-Encoding: \x0bchunked",),
        "on a folded line": (b"Transfer-Encoding:\r\n chunked",),
        "with a space before the colon": (b"Transfer-Encoding : chunked",),
        "behind a line feed": (b"X: x\nTransfer-Encoding: chunked",),
        "behind a carriage return": (b"X: x\rTransfer-Encoding: chunked",),
        "in another case": (b"tRANSFER-eNCODING: CHUNKED",),
        "behind a tab": (b"Transfer-Encoding:\tchunked",),
        "with an empty element": (b"Transfer-Encoding: ,chunked",),
    }.items()
} | {
    "gzip, chunked": Case((post(b"Transfer-Encoding: gzip, chunked"), chunked(HIDDEN)), REFUSED),
    "identity alone": Case((post(b"Transfer-Encoding: identity"), HIDDEN), REFUSED),
    "chunks in HTTP/1.0": Case((post(CHUNKED, version=b"1.0"), chunked(b"x") + HIDDEN), REFUSED),
}
LINES = {
    "lines end with LF": Case((post(size(HIDDEN)).replace(b"\r\n", b"\n"), HIDDEN), REFUSED),
    "head ends with LF LF": Case((post()[:-2] + b"\n" + HIDDEN,), REFUSED),
    "folded header": Case((post(b"X: a\r\n " + size(HIDDEN)), HIDDEN), REFUSED),
    "space before the first header": Case((post().replace(b"\r\nHost", b"\r\n Host"), HIDDEN), REFUSED),
    "space before the colon": Case((post(b"Content-Length : %d" % len(HIDDEN)), HIDDEN), REFUSED),
    "header without a colon": Case((post(b"Content-Length"), HIDDEN), REFUSED),
    "empty name": Case((post(b": 4"), HIDDEN), REFUSED),
    "NUL in a header": Case((post(b"X: a\0b"), HIDDEN), REFUSED),
    "tab in the first line": Case((post().replace(b" ", b"\t", 1), HIDDEN), REFUSED),
    "nothing but a path": Case((b"GET /api/outer\r\n\r\n" + HIDDEN,), REFUSED, 505),
    "HTTP/0.9": Case((get(version=b"0.9"), HIDDEN), REFUSED, 505),
    "HTTP/1.2": Case((get(version=b"1.2"), HIDDEN), REFUSED),
    "HTTP/2.0": Case((get(version=b"2.0"), HIDDEN), REFUSED, 505),
    "preface of HTTP/2": Case((b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", HIDDEN), REFUSED),
    "blank lines first": Case((b"\r\n\r\n" + get(),), GOES_ON),
}
CHUNKS = {
    "chunk extension": Case((post(CHUNKED), b"4;a=b\r\nabcd\r\n0\r\n\r\n"), GOES_ON),
    "chunk extension with LF": Case((post(CHUNKED), b"4;a\nabcd\r\n0\r\n\r\n" + HIDDEN), BROKEN),
    "chunk size with LF": Case((post(CHUNKED), b"4\nabcd\r\n0\r\n\r\n" + HIDDEN), BROKEN),
    "chunk size with 0x": Case((post(CHUNKED), b"0x4\r\nabcd\r\n0\r\n\r\n" + HIDDEN), BROKEN),
    "negative chunk": Case((post(CHUNKED), b"-1\r\n" + HIDDEN), BROKEN),
    "chunk of 2**64": Case((post(CHUNKED), b"10000000000000000\r\n" + HIDDEN), BROKEN),
    "chunk that is longer than told": Case((post(CHUNKED), b"1\r\nabcd\r\n0\r\n\r\n" + HIDDEN), BROKEN),
    "chunk without a size": Case((post(CHUNKED), b"\r\nabcd\r\n0\r\n\r\n" + HIDDEN), BROKEN),
    "trailers": Case((post(CHUNKED), chunked(b"x", b"0\r\nHost: evil\r\nX-API-Key: x\r\n\r\n")), GOES_ON),
    "trailers that would be a length": Case(
        (post(CHUNKED), chunked(b"x", b"0\r\n" + size(HIDDEN) + b"\r\n\r\n" + HIDDEN)), BROKEN
    ),
    "trailer without a colon": Case((post(CHUNKED), chunked(b"x", b"0\r\nGET / HTTP/1.1\r\n\r\n")), BROKEN),
}
OTHERS = {
    "absolute target": Case((get(target=b"http://127.0.0.1" + OUTER),), GOES_ON),
    "absolute target of another": Case((get(target=b"http://evil.example" + OUTER), HIDDEN), REFUSED),
    "keep-alive in HTTP/1.0": Case((get(b"Connection: keep-alive", version=b"1.0"), WHOLE), ENDED),
    "GET with a body": Case((get(size(HIDDEN)), HIDDEN), GOES_ON),
    "GET with a body in chunks": Case((get(CHUNKED), chunked(HIDDEN)), GOES_ON),
    "HEAD with a body": Case((get(size(HIDDEN)).replace(b"GET", b"HEAD"), HIDDEN), GOES_ON),
    "body in the same segment": Case((post(size(HIDDEN)) + HIDDEN,), GOES_ON),
    "body byte by byte": Case((post(size(HIDDEN)), *(bytes([one]) for one in HIDDEN)), GOES_ON),
    "expects 100": Case((post(b"Expect: 100-continue", size(HIDDEN)), HIDDEN), ENDED),
    "expects something else": Case((post(b"Expect: x", size(HIDDEN)), HIDDEN), GOES_ON),
    "more behind Connection: close": Case((get(b"Connection: close"), WHOLE), ENDED),
    "body beyond the limit": Case((post(b"Content-Length: 10000000"), HIDDEN), REFUSED, 413),
    "pipelined": Case((get() + WHOLE,), PIPELINED),
    "pipelined behind a body": Case((post(size(HIDDEN)) + HIDDEN + WHOLE,), PIPELINED),
}
CASES = UPGRADES | LENGTHS | CODINGS | LINES | CHUNKS | OTHERS


# Instead of a part: what follows is sent once so many answers have come.
TWO_ANSWERS = b""


def hear(port: int, *parts: bytes) -> bytes:
    """All that comes back for parts that are sent one by one."""
    heard = b""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with suppress(ConnectionError):
            for number, part in enumerate(parts):
                if part == TWO_ANSWERS:
                    heard += until_two_answers(client)
                elif number:
                    # Nothing depends on it: most of the parts meet the server one by one.
                    time.sleep(0.005)
                client.sendall(part)
        with suppress(ConnectionError):
            while data := client.recv(65536):
                heard += data
    return heard


def until_two_answers(client: socket.socket) -> bytes:
    heard = b""
    while heard.count(b"HTTP/1.1 ") < 2 and (data := client.recv(65536)):
        heard += data
    return heard
