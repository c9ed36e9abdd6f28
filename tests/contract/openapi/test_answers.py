"""The OpenAPI document against what is really sent, and how it is served itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from archive.api.index import archive_index
from instruments.views import EXPANSIONS
from market.models import LastQuote
from market.prices.order_flow import MinuteFlow
from market.store.flow_minutes import FlowToWrite, write_flows
from tests.client import Api, Server
from tests.contract.archive.stored import store_day
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
from tests.patience import PATIENCE_S

from .documented import DOCUMENT, operation, problems, resolved, response

HOUR_MS = 3_600_000
NAMES = {"symbol": "EURUSD", "id": SHOWN, "user": "marta", "path": "manifests/2026-11-20.json"}
JSON_EXAMPLES = [
    pytest.param(path, int(status), example["value"], id=f"{path} {status} {name}")
    for path in DOCUMENT["paths"]
    for status in operation(path)["responses"]
    # A part of a body, and none.
    if status not in ("206", "304")
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
    ("/api/quotes", "", 200),
    ("/api/quotes", "?symbols=EURUSD,SILENT,NOPE", 200),
    ("/api/quotes", "?symbols=EURUSD,,NOPE", 400),
    ("/api/orderflow/{symbol}", "", 200),
    ("/api/orderflow/{symbol}", "?start=2026-11-18T10:00:00Z&limit=2", 200),
    ("/api/orderflow/{symbol}", "?start=yesterday", 400),
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
    ("/api/archive", "", 200),
    ("/api/archive", "?kind=ticks&limit=1", 200),
    ("/api/archive", "?symbol=NOPE", 404),
    ("/api/archive", "?kind=quotes", 400),
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
    LastQuote.objects.create(instrument=eurusd)
    write_flows([FlowToWrite(eurusd.pk, False, MinuteFlow(1_795_000_020_000, 0.5, 0.00001, -0.49999, 1))])
    make_news(summary="Yields eased.", url="https://example.com/1", source="desk").symbols.add(eurusd)


@pytest.mark.parametrize(("path", "status", "body"), JSON_EXAMPLES)
def test_example_fits_its_schema(path: str, status: int, body: Any) -> None:
    assert problems(body, response(path, status)["content"]["application/json"]["schema"]) == []
    assert status == 200 or body["error"]["status"] == status


def check(answer: httpx.Response, path: str, status: int) -> None:
    """Status, body and headers of an answer are those of the document."""
    assert answer.status_code == status, answer.text
    described = response(path, status)
    if "content" in described:
        kind = answer.headers["Content-Type"]
        body = answer.json() if kind == "application/json" else answer.text
        assert problems(body, described["content"][kind]["schema"]) == []
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


def test_file_of_the_archive_is_as_described(shared: Api, settings: Any, tmp_path: Path) -> None:
    settings.ARCHIVE_DIR = tmp_path
    store_day(tmp_path, "2026-11-20")
    archive_index.forget()
    path, ticks = "/api/archive/{path}", "/api/archive/ticks/EURUSD/2026-11-20.parquet"
    check(shared.ask("/api/archive"), "/api/archive", 200)
    check(shared.ask(path.format(**NAMES)), path, 200)
    for headers, status in (({}, 200), ({"Range": "bytes=0-9"}, 206), ({"Range": "bytes=9000-"}, 416)):
        answer = shared.ask(ticks, headers=headers)
        check(answer, path, status)
    check(shared.ask(ticks, headers={"If-None-Match": answer.headers.get("ETag", "*")}), path, 304)
    check(shared.ask(path.format(path="none")), path, 404)
    archive_index.forget()


@pytest.mark.usefixtures("market")
@pytest.mark.parametrize("path", ["/api/archive", "/api/archive/{path}"])
def test_tier_without_the_archive_is_as_described(shared: Api, path: str) -> None:
    key = make_key(make_account(tier=make_tier("without")))
    check(shared.ask(path.format(**NAMES), key=key), path, 403)


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
    answer = httpx.get(f"{shared_server.url}/openapi.json", timeout=PATIENCE_S)
    assert answer.json() == DOCUMENT
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Cache-Control"] == "public, max-age=300"
    assert answer.headers["Access-Control-Allow-Origin"] == "*"


def test_unchanged_document_is_not_sent_again(shared_server: Server) -> None:
    url = f"{shared_server.url}/openapi.json"
    etag = httpx.get(url, timeout=PATIENCE_S).headers["ETag"]
    again = httpx.get(url, headers={"If-None-Match": etag}, timeout=PATIENCE_S)
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["ETag"] == etag
    assert httpx.get(url, headers={"If-None-Match": '"another"'}, timeout=PATIENCE_S).status_code == 200


def test_page_of_the_document_keeps_the_policy_of_all_pages(shared_server: Server) -> None:
    answer = httpx.get(
        f"{shared_server.url}/docs/api", headers={"Accept": "application/json"}, timeout=PATIENCE_S
    )
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    directives = [part.split() for part in answer.headers["Content-Security-Policy"].split(";")]
    policy = {name: sources for name, *sources in directives}
    assert policy["default-src"] == ["'none'"]
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == ["'self'"]
