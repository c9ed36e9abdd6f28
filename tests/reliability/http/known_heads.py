"""Attacks on a server that remembers whole heads: wherever one stands, it is a request there or it is not.

FIRST is asked for at the beginning and LAST at the end; HIDDEN is what an attack wants to have answered."""

from __future__ import annotations

from typing import NamedTuple

from .smuggling import ASKS_FOR_H2C, CHUNKED, HOST, TWO_ANSWERS, chunked, post, size

FIRST, HIDDEN, LAST, OTHER = "FIRST", "HIDDEN", "LAST", "OTHER"
SYMBOLS = (FIRST, HIDDEN, LAST, OTHER)
FOLDED, NUL = b"X: a\r\n b", b"X: a\0b"


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
    sized, other = size(hidden), quote(OTHER, key, size(hidden))
    return {
        "as a body": Attack([first + post(sized), hidden]),
        "as a body in the same segment": Attack([first + post(sized) + hidden]),
        "as a body in pieces": Attack([first + post(sized), hidden[:20], hidden[20:]]),
        "as the body of a GET": Attack([first + other, hidden]),
        "as the body of a GET in the same segment": Attack([first + other + hidden]),
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
        "behind no body": Attack([first + quote(OTHER, key, b"Content-Length: 0") + hidden], hidden=1),
        "behind a body that was not told": Attack([first + b"body", hidden]),
        "in a body beyond the limit": Attack(
            [first + quote(OTHER, key, b"Content-Length: 100000000"), hidden]
        ),
        "CL.TE": Attack([first + post(b"Content-Length: 6", CHUNKED), b"0\r\n\r\n" + hidden]),
        "TE.CL": Attack([first + post(CHUNKED, b"Content-Length: 4"), chunked(hidden)]),
        "CL.TE on a known target": Attack(
            [first + quote(OTHER, key, b"Content-Length: 6", CHUNKED), b"0\r\n\r\n" + hidden]
        ),
        "two lengths": Attack([first + quote(OTHER, key, b"Content-Length: 0", sized), hidden]),
        "length with a sign": Attack([first + quote(OTHER, key, b"Content-Length: +0"), hidden]),
        "a coding that there is not": Attack([first + quote(OTHER, key, b"Transfer-Encoding: x"), hidden]),
        "chunked, behind a tab": Attack(
            [first + quote(OTHER, key, b"Transfer-Encoding:\tx,chunked"), hidden]
        ),
    }


def heads(key: str) -> dict[str, Attack]:
    """HIDDEN stands within, or right behind, a head that is none or has not ended."""
    first, hidden = quote(FIRST, key), quote(HIDDEN, key)
    return {
        "behind half a line": Attack([first + b"GET /api/outer HTTP/1.1\r\nX: ", hidden]),
        "behind half a first line": Attack([first + b"GET /api/outer?", hidden]),
        "behind a letter": Attack([first + b"G", hidden]),
        "behind a line feed": Attack([first + b"\n", hidden], hidden=1),
        "behind a blank line": Attack([first + b"\r\n", hidden], hidden=1),
        "behind NUL": Attack([first + b"\0", hidden]),
        "behind a folded header": Attack([first + quote(OTHER, key, FOLDED), hidden]),
        "behind NUL in a header": Attack([first + quote(OTHER, key, NUL), hidden]),
        "behind two hosts": Attack([first + quote(OTHER, key, HOST) + hidden], hidden=1),
        "behind lines that end with LF": Attack([first + quote(OTHER, key).replace(b"\r\n", b"\n"), hidden]),
        "behind an end of LF LF": Attack([first + quote(OTHER, key)[:-4] + b"\n\n" + hidden]),
        "behind an end of CR LF LF": Attack([first + quote(OTHER, key)[:-4] + b"\r\n\n" + hidden]),
        "behind an end of CR": Attack([first + quote(OTHER, key)[:-2] + b"\r" + hidden]),
        "behind a huge head": Attack([first + quote(OTHER, key, b"X: " + b"a" * 33_000) + hidden]),
        "behind many headers": Attack([first + quote(OTHER, key, *[b"a: b"] * 120) + hidden]),
        "behind another version": Attack([first + quote(OTHER, key, version=b"2.0") + hidden]),
        "byte by byte": Attack([first, *(bytes([each]) for each in hidden)], hidden=1),
        "in two parts": Attack([first + hidden[:40], hidden[40:]], hidden=1),
        "cut in its end": Attack([first + hidden[:-1], hidden[-1:]], hidden=1),
    }


def orders(key: str) -> dict[str, Attack]:
    """HIDDEN stands behind requests of other ways, or behind the end."""
    first, hidden, other = quote(FIRST, key), quote(HIDDEN, key), quote(OTHER, key)
    page = b"GET /accounts/login/ HTTP/1.1\r\n" + HOST + b"\r\n\r\n"
    return {
        "behind a page": Attack([first + page + hidden], hidden=1),
        "between pages": Attack([first + page + hidden + page + other], hidden=1),
        "behind a page, apart": Attack([first + page, hidden, other], hidden=1),
        "behind many": Attack([first + other * 200 + hidden], hidden=1),
        "behind a new head": Attack([first + quote(OTHER, key, b"X: new") + hidden], hidden=1),
        "behind the last": Attack([first + quote(OTHER, key, b"Connection: close"), hidden]),
        "behind the last, at once": Attack([first + quote(OTHER, key, b"Connection: close") + hidden]),
        "behind HTTP/1.0": Attack([first + quote(OTHER, key, version=b"1.0"), hidden]),
        "behind an upgrade": Attack([first + quote(OTHER, key, ASKS_FOR_H2C), hidden]),
        "behind an upgrade of its own segment": Attack([first, quote(OTHER, key, ASKS_FOR_H2C), hidden]),
        "behind what waits to be asked": Attack(
            [first + post(b"Expect: 100-continue", size(hidden)), TWO_ANSWERS, hidden]
        ),
    }
