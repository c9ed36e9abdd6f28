"""What is asked at each door: targets and heads that the short path answers, and many that it passes on."""

from __future__ import annotations

from typing import NamedTuple

QUOTE, BARS = b"/api/market/EURUSD/quote", b"/api/market/EURUSD?timeframe=1m&bars=3"
HOST = b"Host: 127.0.0.1"
KEY = b"X-API-Key: {key}"
PLAIN = HOST, KEY

# daphne reads a request with Twisted, or refuses it itself, before the application hears of it.
OWN_READING = "Twisted refuses it, or reads it, in its own way"


class Asked(NamedTuple):
    head: bytes
    is_short: bool = False
    """Answered on the short path."""
    on_daphne: str = ""
    """Why daphne may say something else."""


def get(
    target: bytes = QUOTE,
    *lines: bytes,
    method: bytes = b"GET",
    version: bytes = b"1.1",
    is_short: bool = False,
    on_daphne: str = "",
) -> Asked:
    head = b"\r\n".join((b"%b %b HTTP/%b" % (method, target, version), *(lines or PLAIN), b"", b""))
    return Asked(head, is_short, on_daphne)


def short(target: bytes = QUOTE, *lines: bytes) -> Asked:
    return get(target, *lines, is_short=True)


def more(*lines: bytes) -> tuple[bytes, ...]:
    return (*PLAIN, *lines)


TARGETS = {
    "quote": short(),
    "quote in lower case": short(b"/api/market/eurusd/quote"),
    "quote with a slash": short(QUOTE + b"/"),
    "quote with an empty query": short(QUOTE + b"?"),
    "quote with a query that nobody reads": short(QUOTE + b"?a=b?c&d"),
    "bars": short(BARS),
    "bars by another order of the query": short(b"/api/market/EURUSD?bars=3&timeframe=1m"),
    "bars with a slash": short(b"/api/market/EURUSD/?timeframe=1m&bars=3"),
    "bars that are closed": short(BARS + b"&closed_only=true"),
    "bars as they come": short(b"/api/market/EURUSD"),
    "symbols": short(b"/api/symbols"),
    "symbols with more": short(b"/api/symbols?expand=digits"),
    "quotes": short(b"/api/quotes?symbols=eurusd,QUIET,NOPE"),
    "quotes of all": short(b"/api/quotes"),
    "quotes with an empty place": get(b"/api/quotes?symbols=EURUSD,"),
    "quotes of a long list": get(b"/api/quotes?symbols=EURUSD," + b"A" * 200),
    "order flow": get(b"/api/orderflow/EURUSD"),
    "bad number": get(b"/api/market/EURUSD?bars=ten"),
    "number out of range": get(b"/api/market/EURUSD?bars=501"),
    "parameter twice": get(BARS + b"&bars=4"),
    "bad timeframe": get(b"/api/market/EURUSD?timeframe=2h"),
    "bad expand": get(b"/api/symbols?expand=nothing"),
    "unknown symbol": get(b"/api/market/NOPE/quote"),
    "inactive symbol": get(b"/api/market/GONE/quote"),
    "symbol without a quote": get(b"/api/market/QUIET/quote"),
    "unknown path": get(b"/api/nothing"),
    "path above": get(b"/api/market/../symbols"),
    "two slashes": get(b"/api//symbols"),
    "parameter of a path": get(b"/api/symbols;a=b"),
    "coded letter": get(b"/api/market/EUR%55SD/quote"),
    "coded slash": get(b"/api/market%2FEURUSD/quote"),
    "coded query": get(b"/api/market/EURUSD?timeframe=1%6D&bars=3"),
    "coded byte that is no text": get(b"/api/market/EURUSD?timeframe=%ff"),
    "fragment": get(QUOTE + b"#a", on_daphne=OWN_READING),
    "long query": get(QUOTE + b"?" + b"a" * 300),
    "whole address": get(b"http://127.0.0.1" + QUOTE, on_daphne=OWN_READING),
    "whole address of another": get(b"http://evil.example" + QUOTE, on_daphne=OWN_READING),
    "byte beyond ASCII": get(b"/api/market/EUR\xe9/quote", on_daphne=OWN_READING),
    "signs of a page": short(b'/api/symbols?"<>{}|^`'),
    "limits": get(b"/api/limits"),
    "session": get(b"/api/session"),
    "signals": get(b"/api/signals"),
    "news": get(b"/api/news"),
}
CALLERS = {
    "no key": get(QUOTE, HOST),
    "empty key": get(QUOTE, HOST, b"X-API-Key:"),
    "unknown key": get(QUOTE, HOST, b"X-API-Key: tw_live_0000"),
    "key beyond ASCII": get(QUOTE, HOST, b"X-API-Key: \xff\xfe"),
    "key in lower case": short(QUOTE, HOST, b"x-api-key: {key}"),
    "key in upper case": short(QUOTE, HOST, b"X-API-KEY: {key}"),
    "spaces before the key": short(QUOTE, HOST, b"X-API-Key: \t {key}"),
    "space behind the key": get(QUOTE, HOST, b"X-API-Key: {key} ", on_daphne="it cuts the space off"),
    "key without a space": short(QUOTE, HOST, b"X-API-Key:{key}"),
    "key twice": get(QUOTE, *more(KEY)),
    "key and an empty one": get(QUOTE, *more(b"X-API-Key:")),
    "keys in a list": get(QUOTE, HOST, b"X-API-Key: {key}, {key}"),
    "key with underscores": get(QUOTE, HOST, b"X_API_Key: {key}"),
    "key as a bearer": get(QUOTE, HOST, b"Authorization: Bearer {key}"),
    "key as a cookie": get(QUOTE, HOST, b"Cookie: X-API-Key={key}"),
    "key in the query": get(QUOTE + b"?api_key={key}", HOST),
    "demo key": short(QUOTE, HOST, b"X-API-Key: {demo}"),
    "demo key from elsewhere": get(QUOTE, HOST, b"X-API-Key: {demo}", b"X-Forwarded-For: 10.0.0.7"),
    "revoked key": get(QUOTE, HOST, b"X-API-Key: {revoked}"),
}
HEADERS = {
    "Origin": short(QUOTE, *more(b"Origin: https://example.com")),
    "If-None-Match": short(QUOTE, *more(b'If-None-Match: "*"')),
    "conditions": short(QUOTE, *more(b"If-Match: x", b"If-Modified-Since: Wed, 18 Nov 2026 12:00:00 GMT")),
    "Range": short(QUOTE, *more(b"Range: bytes=0-1")),
    "Accept": short(QUOTE, *more(b"Accept: text/html;q=0, application/xml", b"Accept-Encoding: gzip, br")),
    "Cookie": short(QUOTE, *more(b"Cookie: sessionid=x")),
    "id of a request": short(QUOTE, *more(b"X-Request-Id: req_mine")),
    "forwarded": short(
        QUOTE, *more(b"X-Forwarded-For: 203.0.113.9", b"X-Forwarded-Host: evil.example", b"Forwarded: for=x")
    ),
    "forwarded in the clear": short(QUOTE, *more(b"X-Forwarded-Proto: http")),
    "another method in a header": short(QUOTE, *more(b"X-HTTP-Method-Override: DELETE")),
    "Connection: keep-alive": short(QUOTE, *more(b"Connection: keep-alive")),
    "trailers are taken": short(QUOTE, *more(b"TE: trailers", b"Connection: TE")),
    "header twice": short(QUOTE, *more(b"Accept: a", b"Accept: b")),
    "header beyond ASCII": short(QUOTE, *more(b"X-Text: \xe4\xff")),
    "port in the host": short(QUOTE, b"Host: 127.0.0.1:8000", KEY),
    "host with a dot at its end": short(QUOTE, b"Host: localhost.", KEY),
    "host in upper case": short(QUOTE, b"HOST: LOCALHOST", KEY),
    "host behind the key": short(QUOTE, KEY, HOST),
    "long head": short(QUOTE, *more(b"X-Long: " + b"a" * 2_000)),
    "host of another": get(QUOTE, b"Host: evil.example", KEY),
    "host with a bad port": get(QUOTE, b"Host: 127.0.0.1:http", KEY),
    "empty host": get(QUOTE, b"Host:", KEY),
    "two hosts": get(QUOTE, HOST, HOST, KEY, on_daphne=OWN_READING),
    "no host": get(QUOTE, KEY),
    "Connection: close": get(
        QUOTE, *more(b"Connection: close"), on_daphne="it says first that it is the last"
    ),
    "Proxy-Connection: close": get(QUOTE, *more(b"Proxy-Connection: close"), on_daphne=OWN_READING),
    "Content-Length: 0": get(QUOTE, *more(b"Content-Length: 0")),
    "two lengths": get(QUOTE, *more(b"Content-Length: 0", b"Content-Length: 0"), on_daphne=OWN_READING),
    "Expect": get(QUOTE, *more(b"Expect: 100-continue"), on_daphne=OWN_READING),
    "Upgrade": get(QUOTE, *more(b"Upgrade: h2c", b"Connection: Upgrade"), on_daphne=OWN_READING),
    "folded header": get(QUOTE, *more(b"X: a\r\n b"), on_daphne=OWN_READING),
    "NUL in a header": get(QUOTE, *more(b"X: a\0b"), on_daphne=OWN_READING),
}
METHODS = {
    "HEAD of a quote": get(method=b"HEAD"),
    "HEAD of bars": get(BARS, method=b"HEAD"),
    "OPTIONS": get(method=b"OPTIONS"),
    "POST": get(method=b"POST"),
    "DELETE": get(method=b"DELETE"),
    "method in lower case": get(method=b"get", on_daphne=OWN_READING),
    "unknown method": get(method=b"BREW", on_daphne=OWN_READING),
    "HTTP/1.0": get(version=b"1.0", on_daphne="it answers in HTTP/1.0 and keeps quiet about the end"),
    "HTTP/1.0, kept": get(
        QUOTE,
        *more(b"Connection: keep-alive"),
        version=b"1.0",
        on_daphne="it answers in HTTP/1.0 and keeps it",
    ),
    "HTTP/1.2": get(version=b"1.2", on_daphne=OWN_READING),
    "blank line first": Asked(b"\r\n" + get().head, is_short=True, on_daphne=OWN_READING),
    "lines end with LF": Asked(get().head.replace(b"\r\n", b"\n"), on_daphne=OWN_READING),
}
ASKED = TARGETS | CALLERS | HEADERS | METHODS
