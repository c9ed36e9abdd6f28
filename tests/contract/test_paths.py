"""Hostile paths and headers, byte by byte."""

from __future__ import annotations

import pytest

from tests.client import Api, Server
from tests.factories import make_instrument, put_quote

from .raw import RawAnswer, raw_get

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


@pytest.fixture(scope="module", autouse=True)
def rows(shared: Api) -> None:
    make_instrument("EURUSD")
    make_instrument("USDJPY")
    put_quote("EURUSD")
    put_quote("USDJPY")


@pytest.fixture
def line(shared: Api) -> bytes:
    return b"X-API-Key: " + shared.key.encode()


def get(server: Server, line: bytes, target: bytes, *lines: bytes) -> RawAnswer:
    return raw_get(server, target, line, *lines)


@pytest.mark.parametrize("path", BOTH, ids=["market", "quote"])
@pytest.mark.parametrize("trick", TRICKS.values(), ids=TRICKS)
def test_tricky_symbol_is_404(shared_server: Server, line: bytes, path: bytes, trick: bytes) -> None:
    answer = get(shared_server, line, path.replace(b"%s", trick))

    assert answer.status == 404
    assert answer.code in ("symbol_not_found", "not_found")
    assert answer.headers["content-type"] == "application/json"
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("trick", TRICKS.values(), ids=TRICKS)
def test_tricky_symbol_without_a_key_is_401(shared_server: Server, trick: bytes) -> None:
    answer = raw_get(shared_server, b"/api/market/" + trick)

    assert (answer.status, answer.code) == (401, "missing_api_key")


@pytest.mark.parametrize(
    "target",
    [
        b"/api/market/EUR/USD",
        b"/api/market/EUR%2FUSD/quote",
        b"/api/market/eur/usd/history",
        b"/api/orderflow/EUR/USD",
        b"/api/analysis/EUR%2fUSD",
    ],
)
def test_pair_with_a_slash_is_told_how_to_write_it(shared_server: Server, line: bytes, target: bytes) -> None:
    answer = get(shared_server, line, target)
    assert (answer.status, answer.code) == (404, "not_found")
    assert "without a slash: EURUSD" in answer.body.decode()


@pytest.mark.parametrize(
    "target", [b"/api/market/EURUSD/quotes", b"/api/market/EURUSD/quote/x", b"/api/news/a/b"]
)
def test_other_unknown_paths_have_no_such_hint(shared_server: Server, line: bytes, target: bytes) -> None:
    assert b"GET /openapi.json lists all paths" in get(shared_server, line, target).body


@pytest.mark.parametrize("target", [b"/api/market/%45URUSD/quote", b"/%61pi/market/eurusd/quot%65"])
def test_coded_letters_are_letters(shared_server: Server, line: bytes, target: bytes) -> None:
    assert get(shared_server, line, target).status == 200


@pytest.mark.parametrize(
    "target",
    [b"/api/symbols%0a", b"/api/symbols%00", b"/api/symbols%20", b"/api%2Fsymbols", b"/api/./symbols"],
)
def test_only_the_exact_path_is_a_path(shared_server: Server, line: bytes, target: bytes) -> None:
    answer = get(shared_server, line, target)

    assert (answer.status, answer.code) == (404, "not_found")


@pytest.mark.parametrize(
    "target",
    [
        b"/api/symbols?\xff=1",
        b"/api/news?limit=\xe2\x82",
        b"/api/news?category=\xff",
        b"/api/market/\xff",
        b"/\xff",
        b"/nothing?\xff",
    ],
    ids=repr,
)
def test_bytes_that_are_no_utf_8_are_refused(shared_server: Server, line: bytes, target: bytes) -> None:
    assert get(shared_server, line, target).status in (400, 404)


def test_header_that_breaks_its_line_adds_none_to_the_answer(shared_server: Server, line: bytes) -> None:
    answer = get(shared_server, line, b"/api/symbols", b"X-Request-Id: a\r\nX-Injected: yes")

    assert answer.status == 200
    assert "x-injected" not in answer.headers


@pytest.mark.parametrize(
    "header", [b"X-API-Key: a\r\n b", b"X-API-Key: a\rX-Injected: yes", b"X-API-Key: a\x00b"], ids=repr
)
def test_broken_key_header_opens_nothing(shared_server: Server, header: bytes) -> None:
    answer = raw_get(shared_server, b"/api/symbols", header)

    assert answer.status in (400, 401)
    assert "x-injected" not in answer.headers


def test_folded_key_is_not_put_together(shared_server: Server, shared: Api) -> None:
    folded = f"X-API-Key: {shared.key[:20]}\r\n {shared.key[20:]}".encode()

    assert raw_get(shared_server, b"/api/symbols", folded).status in (400, 401)
