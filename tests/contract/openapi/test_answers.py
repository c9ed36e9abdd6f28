"""The OpenAPI document against what is really sent, and how it is served itself."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from instruments.views import EXPANSIONS
from tests.client import Api, Server
from tests.contract.published import SHOWN, make_shown
from tests.factories import (
    make_account,
    make_instrument,
    make_key,
    make_news,
    make_signal,
    make_tier,
    put_candles,
    put_quote,
)

from .documented import DOCUMENT, operation, problems, resolved, response

HOUR_MS = 3_600_000
NAMES = {"symbol": "EURUSD", "id": SHOWN, "user": "marta"}
JSON_EXAMPLES = [
    pytest.param(path, int(status), example["value"], id=f"{path} {status} {name}")
    for path in DOCUMENT["paths"]
    for status in operation(path)["responses"]
    for name, example in response(path, int(status))["content"]["application/json"]["examples"].items()
]
ANSWERS = [
    ("/api/symbols", "", 200),
    ("/api/symbols", f"?expand={','.join(EXPANSIONS)}", 200),
    ("/api/symbols", "?expand=leverage", 400),
    ("/api/market/{symbol}", "", 200),
    ("/api/market/{symbol}", "?timeframe=1h&bars=2&closed_only=true", 200),
    ("/api/market/{symbol}", "?timeframe=2h", 400),
    ("/api/market/{symbol}", "?bars=501", 400),
    ("/api/market/{symbol}/quote", "", 200),
    ("/api/market/{symbol}/history", "", 200),
    ("/api/market/{symbol}/history", "?timeframe=1h&limit=2", 200),
    ("/api/market/{symbol}/history", "?limit=10001", 400),
    ("/api/market/{symbol}/history", "?cursor=none", 400),
    ("/api/signals", "", 200),
    ("/api/signals", "?status=closed", 200),
    ("/api/signals", "?status=all&symbol=eurusd", 200),
    ("/api/signals", "?symbol=NOPE", 404),
    ("/api/signals", "?limit=0", 400),
    ("/api/signals/{id}", "", 200),
    ("/api/signals/{id}/proof", "", 200),
    ("/api/signals/ledger", "", 200),
    ("/api/signals/ledger", "?after=1&limit=1", 200),
    ("/api/signals/ledger", "?limit=0", 400),
    ("/api/publishers/{user}", "", 200),
    ("/api/news", "", 200),
    ("/api/news", "?expand=id,url,source,summary,symbols,model", 200),
    ("/api/news", "?category=stocks", 400),
    ("/api/analysis/{symbol}", "", 200),
    ("/api/analysis/{symbol}", "?model=tickwire-analyst-1", 200),
    ("/api/analysis/{symbol}", "?model=oracle", 400),
    ("/api/session", "", 200),
    ("/api/limits", "", 200),
]


@pytest.fixture(scope="module")
def market(shared_server: Server) -> None:
    eurusd = make_instrument("EURUSD")
    make_instrument("SILENT")
    put_quote("EURUSD")
    put_candles("EURUSD", "1h", [HOUR_MS * number for number in range(3)])
    make_signal(eurusd)
    make_signal(eurusd, status="closed")
    make_shown(eurusd)
    make_news(summary="Yields eased.", url="https://example.com/1", source="desk").symbols.add(eurusd)


@pytest.mark.parametrize(("path", "status", "body"), JSON_EXAMPLES)
def test_example_fits_its_schema(path: str, status: int, body: Any) -> None:
    assert problems(body, response(path, status)["content"]["application/json"]["schema"]) == []
    assert status == 200 or body["error"]["status"] == status


def check(answer: httpx.Response, path: str, status: int) -> None:
    """Status, body and headers of an answer are those of the document."""
    assert answer.status_code == status, answer.text
    described = response(path, status)
    assert problems(answer.json(), described["content"][answer.headers["Content-Type"]]["schema"]) == []
    for name, reference in described["headers"].items():
        header = resolved(reference)
        assert name in answer.headers or not header["required"]
        if name in answer.headers:
            value: Any = answer.headers[name]
            value = int(value) if header["schema"]["type"] == "integer" else value
            assert problems(value, header["schema"]) == []


@pytest.mark.usefixtures("market")
@pytest.mark.parametrize(("path", "query", "status"), ANSWERS)
def test_answer_is_as_described(shared: Api, path: str, query: str, status: int) -> None:
    check(shared.ask(path.format(**NAMES) + query), path, status)


@pytest.mark.usefixtures("market")
@pytest.mark.parametrize("path", ["/api/signals/{id}", "/api/signals/{id}/proof", "/api/publishers/{user}"])
def test_missing_signal_and_publisher_are_as_described(shared: Api, path: str) -> None:
    check(shared.ask(path.format(id="none", user="nobody")), path, 404)


@pytest.mark.usefixtures("market")
@pytest.mark.parametrize("path", ["/api/market/{symbol}", "/api/market/{symbol}/quote"])
def test_missing_symbol_and_missing_quote_are_as_described(shared: Api, path: str) -> None:
    check(shared.ask(path.format(symbol="EURUSDD")), path, 404)
    check(shared.ask(path.format(symbol="SILENT")), path, 503)


@pytest.mark.usefixtures("market")
def test_used_up_ai_calls_and_unknown_symbol_are_as_described(shared: Api) -> None:
    path = "/api/analysis/{symbol}"
    key = make_key(make_account(tier=make_tier("none", ai_calls_per_day=0)))
    check(shared.ask(path.format(symbol="SILENT"), key=key), path, 429)
    check(shared.ask(path.format(symbol="SILENT")), path, 200)
    check(shared.ask(path.format(symbol="EURUSDD")), path, 404)


@pytest.mark.usefixtures("market")
@pytest.mark.parametrize("path", DOCUMENT["paths"])
def test_refused_key_is_as_described(shared: Api, path: str) -> None:
    check(shared.ask(path.format(**NAMES), key=None), path, 401)
    check(shared.ask(path.format(**NAMES), key="tw_live_no"), path, 401)


@pytest.mark.usefixtures("market")
def test_used_up_window_is_as_described(shared: Api) -> None:
    key = make_key(make_account(tier=make_tier("tiny", requests_per_minute=1)))
    check(shared.ask("/api/session", key=key), "/api/session", 200)
    check(shared.ask("/api/session", key=key), "/api/session", 429)
    check(shared.ask("/api/limits", key=key), "/api/limits", 200)


def test_document_is_for_everybody_and_may_be_kept(shared_server: Server) -> None:
    answer = httpx.get(f"{shared_server.url}/openapi.json")
    assert answer.json() == DOCUMENT
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Cache-Control"] == "public, max-age=300"
    assert answer.headers["Access-Control-Allow-Origin"] == "*"


def test_unchanged_document_is_not_sent_again(shared_server: Server) -> None:
    url = f"{shared_server.url}/openapi.json"
    etag = httpx.get(url).headers["ETag"]
    again = httpx.get(url, headers={"If-None-Match": etag})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["ETag"] == etag
    assert httpx.get(url, headers={"If-None-Match": '"another"'}).status_code == 200


def test_page_of_the_document_keeps_the_policy_of_all_pages(shared_server: Server) -> None:
    answer = httpx.get(f"{shared_server.url}/docs/api", headers={"Accept": "application/json"})
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    directives = [part.split() for part in answer.headers["Content-Security-Policy"].split(";")]
    policy = {name: sources for name, *sources in directives}
    assert policy["default-src"] == ["'none'"]
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == ["'self'"]


def test_page_shows_the_address_of_the_document_to_no_validator(shared_server: Server) -> None:
    script = httpx.get(f"{shared_server.url}/docs/api?script=").text
    assert '"validatorUrl": null' in script
