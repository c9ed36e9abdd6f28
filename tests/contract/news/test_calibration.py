"""GET /api/news/calibration: whether the scores mean anything."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from news.models import Outcome
from tests.client import Api
from tests.contract.answers import MILLISECONDS
from tests.databases.queries import count_queries
from tests.factories import NOON, make_news

pytestmark = pytest.mark.services

PATH = "/api/news/calibration"
FIELDS = {
    *("category", "sentiment", "horizon", "count", "left_out", "pending"),
    *("mean_move_percent", "median_move_percent", "hit_rate", "too_few"),
}


@pytest.fixture(scope="module", autouse=True)
def outcomes(shared: Api) -> None:
    for number, move in enumerate((0.5, -0.1, 0.2, None)):
        Outcome.objects.create(
            item=make_news(f"Item {number}"),
            horizon="1h",
            category="gold",
            score=0.5,
            label="bullish",
            symbols="XAUUSD",
            entered_at=NOON,
            due_at=NOON + timedelta(hours=1),
            settled_at=NOON + timedelta(hours=2),
            move_percent=move,
        )


def body(shared: Api) -> dict[str, Any]:
    response = shared.ask(PATH)
    assert response.status_code == 200
    found: dict[str, Any] = response.json()
    return found


def test_body_says_when_it_was_made_and_how_many_are_enough(shared: Api) -> None:
    found = body(shared)
    assert set(found) == {"as_of", "enough", "items", "count"}
    assert MILLISECONDS.fullmatch(found["as_of"])
    assert (found["enough"], found["count"]) == (30, 24)


def test_every_category_label_and_horizon_has_its_row(shared: Api) -> None:
    rows = [(row["category"], row["sentiment"], row["horizon"]) for row in body(shared)["items"]]
    assert rows == [
        (category, sentiment, horizon)
        for category in ("forex", "gold", "crypto", "macro")
        for sentiment in ("bullish", "neutral", "bearish")
        for horizon in ("1h", "24h")
    ]


def test_a_row_has_exactly_its_fields(shared: Api) -> None:
    assert all(set(row) == FIELDS for row in body(shared)["items"])


def test_figures_are_those_of_the_outcomes(shared: Api) -> None:
    (row,) = (
        row
        for row in body(shared)["items"]
        if (row["category"], row["sentiment"], row["horizon"]) == ("gold", "bullish", "1h")
    )
    assert row == {
        "category": "gold",
        "sentiment": "bullish",
        "horizon": "1h",
        "count": 3,
        "left_out": 1,
        "pending": 0,
        "mean_move_percent": 0.2,
        "median_move_percent": 0.2,
        "hit_rate": 0.6667,
        "too_few": True,
    }


def test_it_costs_a_request_as_others_do(shared: Api) -> None:
    before, after = (int(shared.ask(PATH).headers["X-RateLimit-Remaining"]) for _ in range(2))
    assert before - after == 1


def test_it_is_added_up_once_a_minute_whoever_asks(shared: Api) -> None:
    shared.ask(PATH)
    with count_queries() as asked:
        for _ in range(5):
            shared.ask(PATH)
    assert asked == []


def test_without_a_key_it_is_refused(shared: Api) -> None:
    assert shared.ask(PATH, key=None).status_code == 401
