"""GET /api/signals/{id}, and the feed of one publisher."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from tests.client import Api
from tests.contract.answers import refusal
from tests.factories import NOON, make_instrument, make_signal, make_user

pytestmark = pytest.mark.services

ACTIVE, CLOSED, OLD, OTHERS = (str(UUID(int=number)) for number in range(1, 5))
NO_SIGNAL = "There is no signal with this id. GET /api/signals?status=all lists them."


@pytest.fixture(scope="module", autouse=True)
def feed(shared: Api) -> None:
    eurusd, dormant = make_instrument("EURUSD"), make_instrument("DORMANT", active=False)
    anna, ben = make_user("anna"), make_user("ben@home")
    make_user("reader")
    make_signal(eurusd, anna, id=UUID(ACTIVE))
    make_signal(eurusd, anna, id=UUID(CLOSED), status="closed", published_at=NOON + timedelta(seconds=1))
    make_signal(dormant, anna, id=UUID(OLD), published_at=NOON - timedelta(days=300))
    make_signal(eurusd, ben, id=UUID(OTHERS))


def ids(shared: Api, query: str) -> list[str]:
    return [item["id"] for item in shared.ask(f"/api/signals?{query}").json()["items"]]


@pytest.mark.parametrize("signal", [ACTIVE, CLOSED, OLD])
def test_one_signal_is_what_the_feed_shows_of_it(shared: Api, signal: str) -> None:
    items: list[dict[str, Any]] = shared.ask("/api/signals?status=all").json()["items"]

    response = shared.ask(f"/api/signals/{signal}")

    assert response.status_code == 200
    assert response.headers["Content-Type"] == "application/json"
    assert response.json() == next(item for item in items if item["id"] == signal)


def test_id_may_be_in_upper_case_and_followed_by_a_slash(shared: Api) -> None:
    assert shared.ask(f"/api/signals/{CLOSED.upper()}/").json()["id"] == CLOSED


@pytest.mark.parametrize(
    "signal", [str(UUID(int=99)), "none", UUID(ACTIVE).hex, f"{{{ACTIVE}}}", "ledgers", "1", "%00", "x" * 500]
)
def test_unknown_id_is_404(shared: Api, signal: str) -> None:
    response = shared.ask(f"/api/signals/{signal}")

    assert refusal(response, 404, "not_found") == NO_SIGNAL


def test_ledger_is_no_id(shared: Api) -> None:
    assert "head" in shared.ask("/api/signals/ledger").json()


@pytest.mark.parametrize("path", [f"/api/signals/{ACTIVE}", "/api/signals?user=anna"])
def test_a_key_is_needed(shared: Api, path: str) -> None:
    refusal(shared.ask(path, key=""), 401, "missing_api_key")


def test_each_costs_one_request(shared: Api) -> None:
    before = int(shared.ask(f"/api/signals/{ACTIVE}").headers["X-RateLimit-Remaining"])

    assert int(shared.ask("/api/signals/none").headers["X-RateLimit-Remaining"]) == before - 1


def test_feed_of_a_publisher(shared: Api) -> None:
    assert ids(shared, "user=anna&status=all") == [CLOSED, ACTIVE, OLD]
    assert ids(shared, "user=anna") == [ACTIVE, OLD]
    assert ids(shared, "user=anna&symbol=EURUSD&status=closed") == [CLOSED]
    assert ids(shared, "user=ben%40home&limit=1") == [OTHERS]
    assert ids(shared, "user=ben%40home&status=closed") == []


@pytest.mark.parametrize("user", ["nobody", "reader", "Anna", "", "%00", "anna%20", "'or 1=1"])
def test_who_never_published_is_404_whether_or_not_somebody_has_the_name(shared: Api, user: str) -> None:
    refusal(shared.ask(f"/api/signals?user={user}"), 404, "not_found", field="user")


def test_unknown_publisher_comes_before_a_bad_parameter(shared: Api) -> None:
    refusal(shared.ask("/api/signals?user=nobody&limit=0"), 404, "not_found", field="user")
    limit = {"field": "limit", "max": 500}
    refusal(shared.ask("/api/signals?user=anna&limit=0"), 400, "parameter_out_of_range", **limit)
    refusal(shared.ask("/api/signals?symbol=NOPE&user=nobody"), 404, "symbol_not_found", field="symbol")


def test_user_given_twice_is_refused(shared: Api) -> None:
    refusal(shared.ask("/api/signals?user=anna&user=anna"), 400, "invalid_parameter", field="user")
