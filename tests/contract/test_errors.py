from __future__ import annotations

import logging
from collections.abc import Iterator

import httpx
import pytest

from market import runtime as market
from market.prices.records import Tick
from tests.client import Api, Server
from tests.factories import make_account, make_instrument, make_key, make_tier, put_quote
from tests.patience import PATIENCE_S

from .answers import PATHS, refusal

OTHER_METHODS = ["POST", "PUT", "PATCH", "DELETE", "TRACE"]


# Of a year that no date can have: what a bug would leave among the quotes.
BROKEN = Tick("BROKEN", 1.0, 1.1, 2**60)


@pytest.fixture(scope="module", autouse=True)
def rows(shared: Api) -> None:
    make_instrument("EURUSD")
    put_quote("EURUSD")


@pytest.fixture
def broken(caplog: pytest.LogCaptureFixture) -> Iterator[str]:
    """The path of an instrument whose quote is broken."""
    make_instrument("BROKEN")
    market.prices.quotes.put(BROKEN, 5)
    with caplog.at_level(logging.ERROR):
        yield "/api/market/BROKEN/quote"
    from instruments.models import Instrument

    Instrument.objects.filter(symbol="BROKEN").delete()


@pytest.mark.parametrize(
    "path",
    [
        "/api",
        "/api/",
        "/api/nothing",
        "/api/nothing/",
        "/api/nothing?limit=0",
        "/api/market",
        "/api/market/",
        "/api/market/EURUSD/candles",
        "/api/market/EURUSD/quote/more",
        "/api/symbols/EURUSD",
        "/api/symbols//",
        "/api//symbols",
        "/api/Symbols",
        "/api/v1/symbols",
    ],
)
def test_unknown_path_below_api_is_404(shared: Api, path: str) -> None:
    refusal(shared.ask(path), 404, "not_found")


@pytest.mark.parametrize("path", ["/nothing", "/apis", "/API/symbols", "//api/symbols", "/nothing.html"])
@pytest.mark.parametrize("accept", ["*/*", "application/json", ""])
def test_unknown_path_elsewhere_is_the_same_error_body(shared_server: Server, path: str, accept: str) -> None:
    response = httpx.get(shared_server.url + path, headers={"Accept": accept}, timeout=PATIENCE_S)

    refusal(response, 404, "not_found")
    assert response.headers["X-API-Version"] == "1"


def test_unknown_path_elsewhere_is_a_page_for_browsers(shared_server: Server) -> None:
    accept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
    response = httpx.get(f"{shared_server.url}/nothing", headers={"Accept": accept}, timeout=PATIENCE_S)

    assert response.status_code == 404
    assert response.headers["Content-Type"].startswith("text/html")
    assert "<html" in response.text


def test_unknown_path_below_api_is_json_for_browsers_too(shared: Api) -> None:
    refusal(shared.ask("/api/nothing", headers={"Accept": "text/html"}), 404, "not_found")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", OTHER_METHODS)
def test_other_methods_are_405_and_name_the_allowed_ones(shared: Api, method: str, path: str) -> None:
    response = shared.ask(path, method=method)

    refusal(response, 405, "method_not_allowed")
    assert response.headers["Allow"] == "GET, HEAD, OPTIONS"


def test_method_in_a_header_is_not_believed(shared: Api) -> None:
    response = shared.ask("/api/symbols", headers={"X-HTTP-Method-Override": "DELETE"})

    assert response.status_code == 200


def test_body_of_a_get_is_ignored(shared: Api) -> None:
    response = shared.ask("/api/news", content=b'{"limit": 0}', headers={"Content-Type": "application/json"})

    assert response.status_code == 200


def test_a_bug_is_500_and_tells_nothing_of_the_inside(shared: Api, broken: str) -> None:
    response = shared.ask(broken)

    refusal(response, 500, "internal_error")
    for secret in ("out of range", "ValueError", "Traceback", "market/", ".py", "fields"):
        assert secret not in response.text


def test_a_bug_is_logged_with_its_request_id_and_its_cause(
    shared: Api, broken: str, caplog: pytest.LogCaptureFixture
) -> None:
    request_id = shared.ask(broken).headers["X-Request-Id"]

    (record,) = (record for record in caplog.records if record.levelno == logging.ERROR)
    assert request_id in record.getMessage()
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], ValueError)


def test_the_next_request_after_a_bug_is_served(shared: Api, broken: str) -> None:
    assert shared.ask(broken).status_code == 500
    assert shared.ask("/api/market/EURUSD/quote").status_code == 200


def test_request_id_stands_in_the_access_log(shared: Api, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "accounts.access"):
        request_id = shared.ask("/api/nothing").headers["X-Request-Id"]

    said = (record for record in caplog.records if record.name == "accounts.access")
    # How many more there were of a flood before may be told at any time.
    (record,) = (record for record in said if not hasattr(record, "count"))
    assert request_id in record.__dict__.values()


def test_no_two_answers_share_a_request_id(shared: Api) -> None:
    ids = {shared.ask("/api/nothing").headers["X-Request-Id"] for _ in range(50)}

    assert len(ids) == 50


@pytest.mark.parametrize(
    ("path", "method"),
    [
        ("/api/symbols", "POST"),
        ("/api/nothing", "GET"),
        ("/api/market/NOSUCH", "GET"),
        ("/api/news?limit=0", "GET"),
    ],
)
def test_used_up_window_is_told_before_anything_else_is(shared: Api, path: str, method: str) -> None:
    key = make_key(make_account(tier=make_tier("single", requests_per_minute=1)))
    assert shared.ask(path, key=key, method=method).status_code in (400, 404, 405)

    refusal(shared.ask(path, key=key, method=method), 429, "rate_limit_exceeded")


def test_missing_key_is_told_before_a_used_up_window(shared: Api) -> None:
    key = make_key(make_account(tier=make_tier("single", requests_per_minute=1)))
    statuses = [shared.ask("/api/symbols", key=each).status_code for each in (key, key, None, "letmein")]

    assert statuses == [200, 429, 401, 401]


@pytest.mark.parametrize(
    "path", ["/api/market/NOSUCH?timeframe=2h&bars=0", "/api/signals?symbol=NOSUCH&limit=0&status=open"]
)
def test_unknown_symbol_is_told_before_bad_parameters(shared: Api, path: str) -> None:
    refusal(shared.ask(path), 404, "symbol_not_found", field="symbol")
