"""Hostile paths, headers and hosts, byte by byte."""

from __future__ import annotations

import pytest

from tests.client import Api, Server
from tests.factories import make_instrument, put_quote

from .raw import exchange, raw_get

pytestmark = pytest.mark.services

TRICKS = {
    "dots": b"..",
    "coded dots": b"%2e%2e",
    "up and out": b"%2e%2e%2f",
    "up to symbols": b"../symbols",
    "coded slash": b"%2F",
    "symbol and coded slash": b"EURUSD%2F",
    "coded slash before quote": b"EURUSD%2Fquote",
    "lower coded slash": b"EURUSD%2fquote",
    "backslash": b"EURUSD%5Cquote",
    "twice coded slash": b"EURUSD%252Fquote",
    "NUL": b"%00",
    "symbol and NUL": b"EURUSD%00",
    "line break": b"%0d%0aSet-Cookie:%20a=b",
    "symbol and newline": b"EURUSD%0a",
    "newline and symbol": b"%0AEURUSD",
    "not UTF-8": b"%ff",
    "symbol and not UTF-8": b"EURUSD%ff",
    "overlong slash": b"%c0%af",
    "lone surrogate": b"%ed%a0%80",
    "semicolon": b";",
    "path parameter": b"EURUSD;a=b",
    "the word quote": b"quote",
    "no symbol": b"",
    "spaces": b"%20EURUSD%20",
    "plus": b"EUR+USD",
    "star": b"*",
    "right to left": b"%E2%80%AEEURUSD",
    "zero width": b"EUR%E2%80%8BUSD",
    "Cyrillic homoglyph": b"%D0%95URUSD",
    "long s": b"U%C5%BFDJPY",
    "full width": b"%EF%BC%A5URUSD",
    "10 KiB": b"E" * 10_240,
    "10 KiB coded": b"%45" * 3_413,
    "percent alone": b"EURUSD%",
    "broken code": b"EURUSD%zz",
    "template": b"%7B%7B7*7%7D%7D",
    "quote mark": b"EURUSD'--",
    "format": b"%25s%25n",
}
BOTH = [b"/api/market/%s", b"/api/market/%s/quote"]
FORGED = b"forged.example"


@pytest.fixture(scope="module", autouse=True)
def rows(shared: Api) -> None:
    for symbol in ("EURUSD", "USDJPY"):
        make_instrument(symbol)
        put_quote(symbol)


@pytest.fixture
def line(shared: Api) -> bytes:
    return b"X-API-Key: " + shared.key.encode()


@pytest.mark.parametrize("trick", TRICKS.values(), ids=TRICKS)
def test_tricky_symbol_is_404_and_401_without_a_key(shared_server: Server, line: bytes, trick: bytes) -> None:
    for path in BOTH:
        answer = raw_get(shared_server, path.replace(b"%s", trick), line)
        assert answer.status == 404
        assert answer.code in ("symbol_not_found", "not_found")
        assert answer.headers["content-type"] == "application/json"
        assert "set-cookie" not in answer.headers
    keyless = raw_get(shared_server, b"/api/market/" + trick)
    assert (keyless.status, keyless.code) == (401, "missing_api_key")


@pytest.mark.parametrize(
    ("target", "hint"),
    [
        (b"/api/market/EUR/USD", b"without a slash: EURUSD"),
        (b"/api/market/EUR%2FUSD/quote", b"without a slash: EURUSD"),
        (b"/api/market/eur/usd/history", b"without a slash: EURUSD"),
        (b"/api/orderflow/EUR/USD", b"without a slash: EURUSD"),
        (b"/api/analysis/EUR%2fUSD", b"without a slash: EURUSD"),
        (b"/api/market/EURUSD/quotes", b"GET /openapi.json lists all paths"),
        (b"/api/market/EURUSD/quote/x", b"GET /openapi.json lists all paths"),
        (b"/api/news/a/b", b"GET /openapi.json lists all paths"),
        *((b"/api/symbols" + end, b"") for end in (b"%0a", b"%00", b"%20")),
        *((other, b"") for other in (b"/api%2Fsymbols", b"/api/./symbols", b"/api/archive%2Fmanifests/a")),
    ],
)
def test_only_the_exact_path_is_a_path(
    shared_server: Server, line: bytes, target: bytes, hint: bytes
) -> None:
    answer = raw_get(shared_server, target, line)
    assert (answer.status, answer.code) == (404, "not_found")
    assert hint in answer.body


@pytest.mark.parametrize("target", [b"/api/market/%45URUSD/quote", b"/%61pi/market/eurusd/quot%65"])
def test_coded_letters_are_letters(shared_server: Server, line: bytes, target: bytes) -> None:
    assert raw_get(shared_server, target, line).status == 200


@pytest.mark.parametrize(
    "target",
    [
        *(b"/api/symbols?\xff=1", b"/api/news?limit=\xe2\x82", b"/api/news?category=\xff"),
        *(b"/api/market/\xff", b"/\xff", b"/nothing?\xff"),
    ],
    ids=repr,
)
def test_bytes_that_are_no_utf_8_are_refused(shared_server: Server, line: bytes, target: bytes) -> None:
    assert raw_get(shared_server, target, line).status in (400, 404)


def test_header_that_breaks_its_line_adds_none_to_the_answer(shared_server: Server, line: bytes) -> None:
    answer = raw_get(shared_server, b"/api/symbols", line, b"X-Request-Id: a\r\nX-Injected: yes")
    assert answer.status == 200
    assert "x-injected" not in answer.headers


@pytest.mark.parametrize("broken", [b"%s\r\n %s", b"a\r\n b", b"a\rX-Injected: yes", b"a\x00b"], ids=repr)
def test_broken_key_header_opens_nothing(shared_server: Server, shared: Api, broken: bytes) -> None:
    if b"%s" in broken:
        broken %= (shared.key[:20].encode(), shared.key[20:].encode())
    answer = raw_get(shared_server, b"/api/symbols", b"X-API-Key: " + broken)
    assert answer.status in (400, 401)
    assert "x-injected" not in answer.headers


# Requests that name somebody else as their host.
@pytest.mark.parametrize(
    "host",
    [
        pytest.param(b"Host: " + FORGED, id="forged"),
        pytest.param(b"Host: 127.0.0.1." + FORGED, id="forged suffix"),
        pytest.param(b"Host: 127.0.0.1@" + FORGED, id="user part"),
        pytest.param(b"Host: 127.0.0.1\r\nHost: " + FORGED, id="two"),
        pytest.param(b"Host: 127.0.0.1\r\nHost: 127.0.0.1", id="twice the same"),
        pytest.param(b"Host: 127.0.0.1/" + FORGED, id="path"),
        pytest.param(b"Host:", id="empty"),
        pytest.param(None, id="none"),
    ],
)
def test_host_that_is_none_of_ours_is_400(shared_server: Server, line: bytes, host: bytes | None) -> None:
    for answer in (
        raw_get(shared_server, b"/api/symbols", line, host=host),
        raw_get(shared_server, b"/nothing", host=host),
    ):
        assert (answer.status, answer.code) == (400, "invalid_parameter")
        assert FORGED.decode() not in answer.text


@pytest.mark.parametrize(
    "host", [b"Host: localhost", b"Host: 127.0.0.1:8000", b"Host: [::1]:80", b"host: LOCALHOST"]
)
def test_host_of_ours_is_served(shared_server: Server, line: bytes, host: bytes) -> None:
    assert raw_get(shared_server, b"/api/symbols", line, host=host).status == 200


def test_forged_host_without_a_key_is_401_and_http_1_0_needs_none(shared_server: Server, line: bytes) -> None:
    assert raw_get(shared_server, b"/api/symbols", host=b"Host: " + FORGED).status == 401
    assert exchange(shared_server, b"GET /api/symbols HTTP/1.0\r\n" + line + b"\r\n\r\n").status == 200


@pytest.mark.parametrize(
    "header", [b"X-Forwarded-Host", b"X-Host", b"Forwarded", b"X-Original-URL", b"X-Rewrite-URL"]
)
def test_forged_host_of_a_proxy_comes_back_nowhere(shared_server: Server, line: bytes, header: bytes) -> None:
    answer = raw_get(shared_server, b"/api/nothing", line, header + b": https://" + FORGED + b"/api/symbols")
    assert (answer.status, answer.code) == (404, "not_found")
    assert FORGED.decode() not in answer.text


@pytest.mark.parametrize("target", [b"http://forged.example/api/symbols", b"//forged.example/api/symbols"])
def test_forged_host_in_the_target_comes_back_nowhere(
    shared_server: Server, line: bytes, target: bytes
) -> None:
    assert FORGED.decode() not in raw_get(shared_server, target, line).text
