"""The viewsets are Django views like any other: the lean handler is a faster way to the same answers."""

from __future__ import annotations

import pytest
from django.test import AsyncClient, Client

from tests.client import Api, Server
from tests.factories import make_instrument, put_quote

VARYING = {
    "x-request-id",
    "date",
    "server",
    "x-quote-age-ms",
    "x-ratelimit-reset",
    "x-ratelimit-remaining",
    "ratelimit",
}
QUERY = "unknown=1"


@pytest.fixture(scope="module", autouse=True)
def eurusd(shared_server: Server) -> None:
    make_instrument("EURUSD")
    put_quote("EURUSD", at_ms=1_795_000_000_000)


@pytest.mark.parametrize(
    "path", ["/api/market/EURUSD/quote", "/api/market/NOPE", "/api/nothing", "/api/symbols/"]
)
@pytest.mark.parametrize("method", ["get", "head", "post", "options"])
def test_stock_handler_answers_the_same(shared_server: Server, shared: Api, path: str, method: str) -> None:
    lean = shared.ask(f"{path}?{QUERY}", method=method.upper())

    ask = getattr(AsyncClient(), method)
    stock = shared_server.run(ask(f"{path}?{QUERY}", headers={"X-API-Key": shared.key}))

    assert stock.status_code == lean.status_code
    assert without_request_id(stock.content) == without_request_id(lean.content)
    lean_headers = {name: value for name, value in lean.headers.items() if name not in VARYING}
    assert lean_headers.items() <= {name.lower(): value for name, value in stock.headers.items()}.items()


def test_synchronous_handler_answers_the_same(shared: Api) -> None:
    headers = {"X-API-Key": shared.key, "Host": "localhost"}
    for path in ("/api/symbols?expand=digits", "/api/symbols?expand=nothing"):
        lean, stock = shared.ask(path), Client().get(path, headers=headers)
        assert stock.status_code == lean.status_code
        assert without_request_id(stock.content) == without_request_id(lean.content)


def without_request_id(body: bytes) -> bytes:
    return body.split(b'"request_id"')[0]
