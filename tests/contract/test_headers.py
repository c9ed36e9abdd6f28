"""What all answers have in common: headers, forms of a path, errors, and the order of checks."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator

import httpx
import pytest
from time_machine import Traveller

from instruments.models import Instrument
from market import runtime as market
from market.prices.records import Tick
from tests.client import Api, Server
from tests.factories import NOON, make_account, make_instrument, make_key, make_tier, put_quote
from tests.patience import PATIENCE_S

from .answers import PATHS, refusal
from .published import make_shown
from .raw import conversation

# Method, path and status: each kind of answer that an authenticated caller can get without trouble.
ANSWERS = [
    *(("GET", path, 200) for path in PATHS),
    ("HEAD", "/api/symbols", 200),
    ("GET", "/api/nothing", 404),
    ("GET", "/api/market/NOSUCH", 404),
    ("GET", "/api/market/UNQUOTED", 503),
    ("GET", "/api/news?limit=0", 400),
    ("POST", "/api/symbols", 405),
]
OF_ONE_ANSWER = {
    *("date", "x-request-id", "x-ratelimit-remaining", "x-ratelimit-reset", "ratelimit", "x-quote-age-ms"),
}
ELSEWHERE = {"Origin": "https://elsewhere.example"}
REQUEST_ID = re.compile(r"req_[a-z2-7]{16}")


@pytest.fixture(scope="module", autouse=True)
def rows(shared: Api) -> None:
    make_shown(make_instrument("EURUSD"))
    make_instrument("UNQUOTED")
    put_quote("EURUSD")


@pytest.fixture
def key(shared: Api) -> str:
    """With a window of its own."""
    return make_key(make_account(tier=make_tier("thirty", requests_per_minute=30, archive=True)))


def single_key() -> str:
    return make_key(make_account(tier=make_tier("single", requests_per_minute=1)))


@pytest.mark.parametrize(("method", "path", "status"), ANSWERS)
def test_every_answer_has_the_headers_of_all(
    clock: Traveller, shared: Api, key: str, method: str, path: str, status: int
) -> None:
    put_quote("EURUSD")
    response = shared.ask(path, key=key, method=method, headers=ELSEWHERE)
    told = response.headers
    assert response.status_code == status
    assert told["X-API-Version"] == "1"
    assert REQUEST_ID.fullmatch(told["X-Request-Id"])
    left = 30 if path == "/api/limits" else 29
    assert (told["X-RateLimit-Limit"], told["X-RateLimit-Remaining"]) == ("30", str(left))
    assert told["X-RateLimit-Reset"] == str(int(NOON.timestamp()) + (60 if left == 29 else 0))
    assert told["RateLimit-Policy"] == '"thirty";q=30;w=60'
    assert told["RateLimit"] == f'"thirty";r={left};t={60 if left == 29 else 0}'
    assert told["Access-Control-Allow-Origin"] == "*"
    assert "Access-Control-Allow-Credentials" not in told
    assert told["Cache-Control"] == "no-store"
    assert ELSEWHERE["Origin"] not in str(told)


def test_stranger_is_told_of_no_window_and_may_read_that_from_anywhere(shared: Api) -> None:
    told = shared.ask("/api/analysis/EURUSD", key=None).headers
    assert not [name for name in told if "ratelimit" in name or name.startswith("x-ai")]
    assert told["Access-Control-Allow-Origin"] == "*"


def test_all_our_headers_are_exposed(shared: Api) -> None:
    single = single_key()
    answers = [shared.ask(path, method=method) for method, path, _ in ANSWERS]
    answers += [shared.ask("/api/symbols", key=single) for _ in range(2)]
    seen = {name for answer in answers for name in answer.headers}
    ours = {name for name in seen if name.startswith(("x-", "ratelimit", "retry-"))}
    exposed = answers[0].headers["Access-Control-Expose-Headers"].lower().split(", ")
    assert ours >= {"x-request-id", "x-api-version", "ratelimit", "ratelimit-policy", "retry-after"}
    assert ours - {"x-content-type-options"} <= set(exposed)
    assert {"x-market-state", "x-last-closed", "x-ai-limit", "x-ai-remaining", "x-ai-reset"} <= set(exposed)


@pytest.mark.parametrize("path", [*PATHS, "/api/nothing"])
def test_preflight_needs_no_key_and_costs_nothing(shared: Api, key: str, path: str) -> None:
    asked = ELSEWHERE | {
        "Access-Control-Request-Method": "GET",
        "Access-Control-Request-Headers": "x-api-key",
    }
    response = shared.ask(path, key=None, method="OPTIONS", headers=asked)
    shared.ask(path, key=key, method="OPTIONS", headers=asked)
    told = response.headers
    assert (response.status_code, response.content, "Content-Length" in told) == (204, b"", False)
    assert told["Allow"] == "GET, HEAD, OPTIONS"
    assert (told["X-API-Version"], told["Access-Control-Allow-Origin"]) == ("1", "*")
    assert "GET" in told["Access-Control-Allow-Methods"].split(", ")
    allowed = told["Access-Control-Allow-Headers"].lower()
    assert allowed == "x-api-key, if-none-match, if-range, range"
    assert shared.ask("/api/limits", key=key).json()["requests"]["remaining"] == 30


@pytest.mark.parametrize("path", [*PATHS, "/api/nothing", "/api/news?limit=0"])
def test_head_is_get_without_its_body(clock: Traveller, shared: Api, path: str) -> None:
    put_quote("EURUSD")
    # An analysis is made once, and the same from then on.
    shared.ask(path)
    get, head = (shared.ask(path, method=method) for method in ("GET", "HEAD"))
    assert (head.status_code, head.content) == (get.status_code, b"")
    # The length of a page that is made while it is sent is unknown before.
    length = None if path.endswith(("/history", "/ticks")) else str(len(get.content))
    assert get.headers.get("Content-Length") == head.headers.get("Content-Length") == length
    of_get, of_head = (dict(each.headers) for each in (get, head))
    of_get.pop("transfer-encoding", None)
    assert of_get.keys() == of_head.keys()
    assert {name for name in of_get if of_get[name] != of_head[name]} <= OF_ONE_ANSWER


def test_nothing_follows_the_headers_of_head(shared_server: Server, shared: Api) -> None:
    line = b"X-API-Key: " + shared.key.encode()
    said = conversation(shared_server, b"HEAD /api/session", b"GET /api/nothing", line)
    first, _, rest = said.partition(b"\r\n\r\n")
    assert first.startswith(b"HTTP/1.1 200 ")
    assert rest.startswith(b"HTTP/1.1 404 ")


@pytest.mark.parametrize("path", PATHS)
def test_both_slash_forms_answer_without_a_redirect(clock: Traveller, shared: Api, path: str) -> None:
    put_quote("EURUSD")
    shared.ask(path)
    without, slash = shared.ask(path), shared.ask(f"{path}/")
    assert (without.status_code, slash.status_code) == (200, 200)
    # What is left of a limit changes from one second to the next.
    left = rb'"(remaining|reset)":\d+'
    assert re.sub(left, b"", slash.content) == re.sub(left, b"", without.content)


def test_request_ids_are_ours_and_of_one_answer_each(shared: Api) -> None:
    chosen = {"X-Request-Id": "req_chosenbyclient"}
    ids = {shared.ask("/api/nothing", headers=chosen).headers["X-Request-Id"] for _ in range(50)}
    assert len(ids) == 50
    assert all(map(REQUEST_ID.fullmatch, ids))


# Errors.
@pytest.mark.parametrize(
    "path",
    [
        *("/api", "/api/", "/api/nothing", "/api/nothing/", "/api/nothing?limit=0", "/api/market"),
        *("/api/market/", "/api/market/EURUSD/candles", "/api/market/EURUSD/quote/more", "/api/v1/symbols"),
        *("/api/symbols/EURUSD", "/api/symbols//", "/api//symbols", "/api/Symbols"),
        *("/api/publishers", "/api/publishers/", "/api/publishers/marta/signals"),
    ],
)
def test_unknown_path_below_api_is_404_in_json_for_browsers_too(shared: Api, path: str) -> None:
    refusal(shared.ask(path, headers={"Accept": "text/html"}), 404, "not_found")


@pytest.mark.parametrize("path", ["/nothing", "/apis", "/API/symbols", "//api/symbols", "/nothing.html"])
@pytest.mark.parametrize("accept", ["*/*", "application/json", ""])
def test_unknown_path_elsewhere_is_the_same_error_body(shared_server: Server, path: str, accept: str) -> None:
    response = httpx.get(shared_server.url + path, headers={"Accept": accept}, timeout=PATIENCE_S)
    refusal(response, 404, "not_found")
    assert response.headers["X-API-Version"] == "1"


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "TRACE"])
def test_other_methods_are_405_and_name_the_allowed_ones(shared: Api, method: str, path: str) -> None:
    response = shared.ask(path, method=method)
    refusal(response, 405, "method_not_allowed")
    assert response.headers["Allow"] == "GET, HEAD, OPTIONS"


def test_method_in_a_header_and_body_of_a_get_are_ignored(shared: Api) -> None:
    headers = {"X-HTTP-Method-Override": "DELETE", "Content-Type": "application/json"}
    assert shared.ask("/api/news", content=b'{"limit": 0}', headers=headers).status_code == 200


@pytest.fixture
def broken(caplog: pytest.LogCaptureFixture) -> Iterator[str]:
    """The path of an instrument whose quote is of a year that no date can have, as a bug would leave it."""
    make_instrument("BROKEN")
    market.prices.quotes.put(Tick("BROKEN", 1.0, 1.1, 2**60), 5)
    with caplog.at_level(logging.ERROR):
        yield "/api/market/BROKEN/quote"
    Instrument.objects.filter(symbol="BROKEN").delete()


def test_a_bug_is_500_that_tells_nothing_of_the_inside_and_logged_with_its_cause(
    shared: Api, broken: str, caplog: pytest.LogCaptureFixture
) -> None:
    response = shared.ask(broken)
    refusal(response, 500, "internal_error")
    for secret in ("out of range", "ValueError", "Traceback", "market/", ".py", "fields"):
        assert secret not in response.text
    (record,) = (record for record in caplog.records if record.levelno == logging.ERROR)
    assert response.headers["X-Request-Id"] in record.getMessage()
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], ValueError)
    assert shared.ask("/api/market/EURUSD/quote").status_code == 200


# The order of checks.
@pytest.mark.parametrize(
    ("path", "method"),
    [
        ("/api/symbols", "POST"),
        ("/api/nothing", "GET"),
        ("/api/market/NOSUCH", "GET"),
        ("/api/news?limit=0", "GET"),
        ("/api/quotes?symbols=", "GET"),
        ("/api/analysis/NOSUCH?model=oracle", "GET"),
    ],
)
def test_missing_key_is_told_first_and_then_a_used_up_window(shared: Api, path: str, method: str) -> None:
    key = single_key()
    assert shared.ask(path, key=key, method=method).status_code in (400, 404, 405)
    refusal(shared.ask(path, key=key, method=method), 429, "rate_limit_exceeded")
    assert [shared.ask(path, key=each, method=method).status_code for each in (None, "letmein")] == [401] * 2


@pytest.mark.parametrize(
    "path",
    [
        "/api/market/NOSUCH?timeframe=2h&bars=0",
        "/api/market/NOSUCH/history?limit=0",
        "/api/orderflow/NOSUCH?limit=0",
        "/api/signals?symbol=NOSUCH&limit=0&status=open",
        "/api/signals?symbol=NOSUCH&user=nobody&cursor=x",
        "/api/analysis/NOSUCH?model=oracle",
        "/api/archive?symbol=NOSUCH&limit=0",
    ],
)
def test_unknown_symbol_is_told_before_bad_parameters(shared: Api, path: str) -> None:
    refusal(shared.ask(path), 404, "symbol_not_found", field="symbol")


@pytest.mark.parametrize("query", ["limit=0", "cursor=x", "start=0"])
def test_unknown_publisher_is_told_before_bad_parameters(shared: Api, query: str) -> None:
    refusal(shared.ask(f"/api/signals?user=nobody&{query}"), 404, "not_found", field="user")
