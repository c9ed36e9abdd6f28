"""The OpenAPI document against what is really sent, and how it is served itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from archive.index import archive_index
from market.api.symbols import EXPANSIONS
from market.models import LastQuote
from market.prices.order_flow import MinuteFlow
from market.store.checkpoints import FlowToWrite, write_flows
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
    # A part of a body, none, and what is of no status.
    if status not in ("206", "304", "default")
    for name, example in response(path, int(status))["content"]["application/json"]["examples"].items()
]
ANSWERS = [
    ("/api/symbols", ""),
    ("/api/symbols", f"?expand={','.join(EXPANSIONS)}"),
    ("/api/market/{symbol}", ""),
    ("/api/market/{symbol}", "?timeframe=1h&bars=2&closed_only=true"),
    ("/api/market/{symbol}", "?timeframe=1h&expand=basis"),
    ("/api/market/{symbol}/quote", ""),
    ("/api/market/{symbol}/history", ""),
    ("/api/market/{symbol}/history", "?timeframe=1h&expand=basis"),
    ("/api/market/{symbol}/history", "?timeframe=1h&limit=2"),
    ("/api/quotes", ""),
    ("/api/quotes", "?symbols=EURUSD,SILENT,NOPE"),
    ("/api/orderflow/{symbol}", ""),
    ("/api/orderflow/{symbol}", "?start=2026-11-18T10:00:00Z&limit=2"),
    ("/api/signals", ""),
    ("/api/signals", "?status=closed"),
    ("/api/signals", "?status=all&symbol=eurusd"),
    ("/api/signals/{id}", ""),
    ("/api/signals/{id}/proof", ""),
    ("/api/signals/ledger", ""),
    ("/api/signals/ledger", "?after=1&limit=1"),
    ("/api/publishers/{user}", ""),
    ("/api/news", ""),
    ("/api/news", "?expand=id,url,source,summary,symbols,model"),
    ("/api/analysis/{symbol}", ""),
    ("/api/analysis/{symbol}", "?model=tickwire-analyst-1"),
    ("/api/archive", ""),
    ("/api/archive", "?kind=ticks&limit=1"),
    ("/api/session", ""),
    ("/api/limits", ""),
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
@pytest.mark.parametrize(("path", "query"), ANSWERS)
def test_answer_is_as_described(shared: Api, path: str, query: str) -> None:
    check(shared.ask(path.format(**NAMES) + query), path, 200)


@pytest.mark.usefixtures("market")
def test_refusals_that_no_parameter_causes_are_as_described(shared: Api) -> None:
    for path in ("/api/signals/{id}", "/api/signals/{id}/proof", "/api/publishers/{user}"):
        check(shared.ask(path.format(id="none", user="nobody")), path, 404)
    for path in ("/api/market/{symbol}", "/api/market/{symbol}/quote"):
        check(shared.ask(path.format(symbol="EURUSDD")), path, 404)
        check(shared.ask(path.format(symbol="SILENT")), path, 503)
    analysis, none = (
        "/api/analysis/{symbol}",
        make_key(make_account(tier=make_tier("none", ai_calls_per_day=0))),
    )
    check(shared.ask(analysis.format(symbol="SILENT"), key=none), analysis, 429)
    for path in ("/api/archive", "/api/archive/{path}"):
        check(shared.ask(path.format(**NAMES), key=none), path, 403)
    tiny = make_key(make_account(tier=make_tier("tiny", requests_per_minute=1)))
    for path, status in (("/api/session", 200), ("/api/session", 429), ("/api/limits", 200)):
        check(shared.ask(path, key=tiny), path, status)


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


def test_document_is_for_everybody_and_may_be_kept(shared_server: Server) -> None:
    url = f"{shared_server.url}/openapi.json"
    answer = httpx.get(url, timeout=PATIENCE_S)
    told = answer.json()
    # Generators need an absolute address, and a tool that reads it must not send a key anywhere else.
    assert [server["url"] for server in told["servers"]] == [shared_server.url]
    assert told == DOCUMENT | {"servers": told["servers"]}
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Cache-Control"] == "private, max-age=300"
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    for tag, status in ((answer.headers["ETag"], 304), ('"another"', 200)):
        again = httpx.get(url, headers={"If-None-Match": tag}, timeout=PATIENCE_S)
        assert (again.status_code, again.headers["ETag"]) == (status, answer.headers["ETag"])
        assert (again.content == b"") is (status == 304)


def test_forged_host_stands_in_no_document_that_others_receive(shared_server: Server) -> None:
    for name in ("openapi.json", "asyncapi.json"):
        url = f"{shared_server.url}/{name}"
        assert httpx.get(url, headers={"Host": "forged.example"}, timeout=PATIENCE_S).status_code == 400
        odd = httpx.get(url, headers={"Host": "localhost:1"}, timeout=PATIENCE_S)
        assert "localhost:1" in odd.text
        assert odd.headers["Cache-Control"] == "private, max-age=300"
        assert "localhost:1" not in httpx.get(url, timeout=PATIENCE_S).text


def test_page_of_the_document_keeps_the_policy_of_all_pages(shared_server: Server) -> None:
    answer = httpx.get(
        f"{shared_server.url}/docs/api", headers={"Accept": "application/json"}, timeout=PATIENCE_S
    )
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    directives = [part.split() for part in answer.headers["Content-Security-Policy"].split(";")]
    policy = {name: sources for name, *sources in directives}
    assert policy["default-src"] == ["'none'"]
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == ["'self'"]
