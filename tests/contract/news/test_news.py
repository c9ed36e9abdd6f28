"""GET /api/news and /api/news/calibration."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from news.models import NewsItem, Outcome
from tests.client import Api
from tests.contract.answers import MILLISECONDS
from tests.databases.queries import count_queries
from tests.factories import NOON, make_instrument, make_news

pytestmark = pytest.mark.services

FIELDS = {"title", "category", "sentiment", "sentiment_score", "timestamp"}
CATEGORIES = ["forex", "gold", "crypto", "macro"]
EXPANSIONS = ["id", "url", "source", "summary", "symbols", "model"]
LONG_AGO = NOON - timedelta(days=30)


@pytest.fixture(scope="module", autouse=True)
def feed(shared: Api) -> None:
    """Few in each of three categories; so many in `macro`, and so old, that only the limit sees them."""
    make_news("Draft", category="gold", status="draft", published_at=NOON + timedelta(hours=1))
    make_news("Rejected", category="gold", status="rejected", published_at=NOON + timedelta(hours=1))
    make_news("Unscored", category="gold", status="draft", sentiment_score=None, model="")
    make_news("Gold, first", category="gold", published_at=NOON - timedelta(hours=2))
    make_news("Gold, last", category="gold", published_at=NOON - timedelta(hours=1, milliseconds=-125))
    for title in ("Tie, first", "Tie, second", "Tie, third"):
        make_news(title, category="crypto", published_at=NOON - timedelta(hours=4))
    euro = make_news(
        "Euro firms",
        category="forex",
        sentiment_score=0.25,
        url="https://example.com/euro",
        source="Example Wire",
        summary="It does.",
        model="staff",
    )
    euro.symbols.set([make_instrument("GBPUSD"), make_instrument("EURUSD")])
    NewsItem.objects.bulk_create(
        NewsItem(
            title="Old",
            category="macro",
            status="published",
            sentiment_score=0,
            model="m",
            published_at=LONG_AGO,
        )
        for _ in range(501)
    )


def items(shared: Api, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = shared.ask(f"/api/news?{query}").json()["items"]
    return found


def test_items_have_exactly_the_fields_of_the_specification_newest_first(shared: Api) -> None:
    response = shared.ask("/api/news?limit=500")
    assert (response.status_code, response.headers["Content-Type"]) == (200, "application/json")
    assert set(response.json()) == {"items"}
    found = response.json()["items"]
    assert all(set(item) == FIELDS for item in found)
    assert {item["category"] for item in found} == set(CATEGORIES)
    assert found[0] == {
        "title": "Euro firms",
        "category": "forex",
        "sentiment": "bullish",
        "sentiment_score": 0.25,
        "timestamp": "2026-11-18T12:00:00.000Z",
    }
    assert found[1]["timestamp"] == "2026-11-18T11:00:00.125Z"
    # No draft, nothing rejected or unscored; ties by id descending.
    ties = ["Tie, third", "Tie, second", "Tie, first"]
    assert [item["title"] for item in found[:7]] == ["Euro firms", "Gold, last", "Gold, first", *ties, "Old"]


@pytest.mark.parametrize(
    "query", [*CATEGORIES, "gold,crypto", "crypto%2Cgold", "gold,crypto,gold", "forex,gold,crypto,macro"]
)
def test_category_is_a_comma_separated_list_that_filters(shared: Api, query: str) -> None:
    found, whole = items(shared, f"category={query}&limit=5"), items(shared, "limit=500")
    assert found == [item for item in whole if item["category"] in query.replace("%2C", ",").split(",")][:5]


@pytest.mark.parametrize(
    ("query", "count"), [("", 20), ("&limit=1", 1), ("&limit=21", 21), ("&limit=500", 500)]
)
def test_limit_is_20_by_default_and_500_at_most(shared: Api, query: str, count: int) -> None:
    assert len(items(shared, f"category=macro{query}")) == count


@pytest.mark.parametrize(
    ("score", "label"),
    [
        (1, "bullish"),
        (0.15, "bullish"),
        (0.1499, "neutral"),
        (0, "neutral"),
        (-0.1499, "neutral"),
        (-0.15, "bearish"),
        (-1, "bearish"),
    ],
)
def test_label_is_a_function_of_the_score(shared: Api, score: float, label: str) -> None:
    made = make_news(f"Scored {score}", category="macro", sentiment_score=score)
    item = items(shared, "category=macro&limit=1")[0]
    made.delete()
    assert (item["title"], item["sentiment"], item["sentiment_score"]) == (f"Scored {score}", label, score)
    assert type(item["sentiment_score"]) in (int, float)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("url", "https://example.com/euro"),
        ("source", "Example Wire"),
        ("summary", "It does."),
        ("symbols", ["EURUSD", "GBPUSD"]),
        ("model", "staff"),
    ],
)
def test_an_expansion_adds_its_one_field(shared: Api, name: str, value: object) -> None:
    (item,) = items(shared, f"category=forex&expand={name}")
    assert set(item) == FIELDS | {name}
    assert item[name] == value


def test_expansions_change_neither_order_nor_number(shared: Api) -> None:
    expanded = items(shared, f"limit=500&expand={','.join(EXPANSIONS)}")
    assert all(set(item) == FIELDS | set(EXPANSIONS) for item in expanded)
    assert all(item["symbols"] == [] for item in expanded if item["title"] != "Euro firms")
    assert len({item["id"] for item in expanded}) == len(expanded)
    assert [item["title"] for item in expanded] == [item["title"] for item in items(shared, "limit=500")]


# Whether the scores mean anything.
CALIBRATION = "/api/news/calibration"


@pytest.fixture(scope="module")
def outcomes(shared: Api) -> None:
    for number, move in enumerate((0.5, -0.1, 0.2, None)):
        Outcome.objects.create(
            item=make_news(f"Item {number}", status="draft"),
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


@pytest.mark.usefixtures("outcomes")
def test_every_category_label_and_horizon_has_its_figures(shared: Api) -> None:
    response = shared.ask(CALIBRATION)
    assert response.status_code == 200
    body: dict[str, Any] = response.json()
    assert set(body) == {"as_of", "enough", "items", "count"}
    assert MILLISECONDS.fullmatch(body["as_of"])
    assert (body["enough"], body["count"]) == (30, 24)
    assert [(row["category"], row["sentiment"], row["horizon"]) for row in body["items"]] == [
        (category, sentiment, horizon)
        for category in ("forex", "gold", "crypto", "macro")
        for sentiment in ("bullish", "neutral", "bearish")
        for horizon in ("1h", "24h")
    ]
    assert body["items"][6] == {
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
    assert all(row.keys() == body["items"][6].keys() for row in body["items"])


def test_it_is_added_up_once_a_minute_whoever_asks(shared: Api) -> None:
    shared.ask(CALIBRATION)
    with count_queries() as asked:
        for _ in range(5):
            shared.ask(CALIBRATION)
    assert asked == []
