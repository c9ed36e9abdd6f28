from __future__ import annotations

import re

import pytest
from time_machine import Traveller

from tests.client import Api, Server
from tests.factories import NOON, make_account, make_instrument, make_key, make_tier, put_quote

from .answers import PATHS
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
    "date",
    "x-request-id",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
    "ratelimit",
    "x-quote-age-ms",
}


@pytest.fixture(scope="module", autouse=True)
def rows(shared: Api) -> None:
    make_shown(make_instrument("EURUSD"))
    make_instrument("UNQUOTED")
    put_quote("EURUSD")


@pytest.fixture
def key(shared: Api) -> str:
    """With a window of its own."""
    return make_key(make_account(tier=make_tier("thirty", requests_per_minute=30, archive=True)))


@pytest.mark.parametrize(("method", "path", "status"), [*ANSWERS, ("OPTIONS", "/api/symbols", 204)])
def test_every_answer_names_its_version_and_request(shared: Api, method: str, path: str, status: int) -> None:
    response = shared.ask(path, method=method)

    assert response.status_code == status
    assert response.headers["X-API-Version"] == "1"
    assert re.fullmatch(r"req_[a-z2-7]{16}", response.headers["X-Request-Id"])


@pytest.mark.parametrize(("method", "path", "status"), ANSWERS)
def test_every_answer_tells_where_the_account_stands(
    shared: Api, key: str, method: str, path: str, status: int
) -> None:
    response = shared.ask(path, key=key, method=method)

    assert response.status_code == status
    left = 30 if path == "/api/limits" else 29
    assert response.headers["X-RateLimit-Limit"] == "30"
    assert response.headers["X-RateLimit-Remaining"] == str(left)
    assert re.fullmatch(r"\d{10}", response.headers["X-RateLimit-Reset"])
    assert response.headers["RateLimit-Policy"] == '"thirty";q=30;w=60'
    assert re.fullmatch(rf'"thirty";r={left};t=\d{{1,2}}', response.headers["RateLimit"])


def test_refused_answer_tells_where_the_account_stands(shared: Api) -> None:
    key = make_key(make_account(tier=make_tier("single", requests_per_minute=1)))
    shared.ask("/api/symbols", key=key)

    response = shared.ask("/api/symbols", key=key)

    assert response.status_code == 429
    assert response.headers["X-RateLimit-Remaining"] == "0"
    assert re.fullmatch(r'"single";r=0;t=\d{1,2}', response.headers["RateLimit"])
    assert re.fullmatch(r"\d{1,2}", response.headers["Retry-After"])


def test_first_slot_frees_a_minute_after_it_was_taken(clock: Traveller, shared: Api, key: str) -> None:
    response = shared.ask("/api/symbols", key=key)

    assert response.headers["X-RateLimit-Reset"] == str(int(NOON.timestamp()) + 60)
    assert response.headers["RateLimit"] == '"thirty";r=29;t=60'


def test_stranger_is_not_told_of_any_window(shared: Api) -> None:
    response = shared.ask("/api/symbols", key=None)

    assert not [name for name in response.headers if "ratelimit" in name]


@pytest.mark.parametrize(("method", "path", "status"), [*ANSWERS, ("OPTIONS", "/api/symbols", 204)])
def test_every_answer_may_be_read_from_anywhere(shared: Api, method: str, path: str, status: int) -> None:
    response = shared.ask(path, method=method, headers={"Origin": "https://elsewhere.example"})

    assert response.headers["Access-Control-Allow-Origin"] == "*"
    assert "Access-Control-Allow-Credentials" not in response.headers


def test_answer_to_a_stranger_may_be_read_from_anywhere(shared: Api) -> None:
    assert shared.ask("/api/symbols", key=None).headers["Access-Control-Allow-Origin"] == "*"


def test_all_our_headers_are_exposed(shared: Api) -> None:
    single = make_key(make_account(tier=make_tier("single", requests_per_minute=1)))
    answers = [shared.ask(path, method=method) for method, path, _ in ANSWERS]
    answers += [shared.ask("/api/symbols", key=single) for _ in range(2)]
    seen = {name for answer in answers for name in answer.headers}
    ours = {name for name in seen if name.startswith(("x-", "ratelimit", "retry-"))} - {
        "x-content-type-options"
    }

    exposed = answers[0].headers["Access-Control-Expose-Headers"].lower().split(", ")

    assert ours >= {
        "x-request-id",
        "x-api-version",
        "ratelimit",
        "ratelimit-policy",
        "retry-after",
        "x-market-state",
    }
    assert ours <= set(exposed)
    assert {"x-last-closed", "x-ai-limit", "x-ai-remaining", "x-ai-reset"} <= set(exposed)


@pytest.mark.parametrize("path", [*PATHS, "/api/nothing"])
def test_preflight_needs_no_key_and_costs_nothing(shared: Api, key: str, path: str) -> None:
    asked = {
        "Origin": "https://elsewhere.example",
        "Access-Control-Request-Method": "GET",
        "Access-Control-Request-Headers": "x-api-key",
    }
    response = shared.ask(path, key=None, method="OPTIONS", headers=asked)
    shared.ask(path, key=key, method="OPTIONS", headers=asked)

    assert response.status_code == 204
    assert response.content == b""
    assert response.headers["Allow"] == "GET, HEAD, OPTIONS"
    assert "GET" in response.headers["Access-Control-Allow-Methods"].split(", ")
    allowed = response.headers["Access-Control-Allow-Headers"].lower()
    assert allowed == "x-api-key, if-none-match, if-range, range"
    assert shared.ask("/api/limits", key=key).json()["requests"]["remaining"] == 30


def test_answer_without_content_has_no_length(shared: Api) -> None:
    assert "Content-Length" not in shared.ask("/api/symbols", key=None, method="OPTIONS").headers


@pytest.mark.parametrize("path", [*PATHS, "/api/nothing", "/api/news?limit=0"])
def test_head_is_get_without_its_body(clock: Traveller, shared: Api, path: str) -> None:
    put_quote("EURUSD")
    # An analysis is made once, and the same from then on.
    shared.ask(path)
    get, head = (shared.ask(path, method=method) for method in ("GET", "HEAD"))

    assert head.status_code == get.status_code
    assert head.content == b""
    # Nobody knows before how long a page of history is.
    length = None if path.endswith("/history") else str(len(get.content))
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


@pytest.mark.parametrize("path", PATHS)
def test_answers_are_not_to_be_stored(shared: Api, path: str) -> None:
    assert shared.ask(path).headers["Cache-Control"] == "no-store"


def test_names_of_the_clients_choice_come_back_nowhere(shared: Api) -> None:
    sent = {"X-Request-Id": "req_chosenbyclient", "Origin": "https://elsewhere.example"}
    response = shared.ask("/api/symbols", headers=sent)

    for value in sent.values():
        assert value not in str(response.headers)
