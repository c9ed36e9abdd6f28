from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from news.models import NewsItem
from tests.client import Api
from tests.contract.answers import refusal
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


def titles(shared: Api, query: str = "") -> list[str]:
    return [item["title"] for item in items(shared, query)]


def test_body_is_items_and_nothing_else(shared: Api) -> None:
    response = shared.ask("/api/news")

    assert response.status_code == 200
    assert response.headers["Content-Type"] == "application/json"
    assert set(response.json()) == {"items"}


def test_item_has_exactly_the_fields_of_the_specification(shared: Api) -> None:
    assert items(shared, "category=forex") == [
        {
            "title": "Euro firms",
            "category": "forex",
            "sentiment": "bullish",
            "sentiment_score": 0.25,
            "timestamp": "2026-11-18T12:00:00.000Z",
        }
    ]


def test_every_item_has_the_same_fields(shared: Api) -> None:
    assert all(set(item) == FIELDS for item in items(shared, "limit=500"))


def test_timestamp_keeps_its_milliseconds(shared: Api) -> None:
    assert items(shared, "category=gold&limit=1")[0]["timestamp"] == "2026-11-18T11:00:00.125Z"


def test_drafts_rejected_and_unscored_items_are_not_in_the_feed(shared: Api) -> None:
    assert titles(shared, "category=gold") == ["Gold, last", "Gold, first"]


def test_newest_come_first_whatever_their_category(shared: Api) -> None:
    assert titles(shared)[:3] == ["Euro firms", "Gold, last", "Gold, first"]


def test_ties_are_ordered_by_id_descending(shared: Api) -> None:
    assert titles(shared, "category=crypto") == ["Tie, third", "Tie, second", "Tie, first"]


@pytest.mark.parametrize("category", CATEGORIES)
def test_category_filters(shared: Api, category: str) -> None:
    assert {item["category"] for item in items(shared, f"category={category}&limit=500")} == {category}


@pytest.mark.parametrize(
    "query", ["category=gold,crypto", "category=crypto%2Cgold", "category=gold,crypto,gold"]
)
def test_categories_are_a_comma_separated_list(shared: Api, query: str) -> None:
    assert {item["category"] for item in items(shared, query)} == {"gold", "crypto"}


def test_without_a_category_all_are_in_the_feed(shared: Api) -> None:
    assert {item["category"] for item in items(shared, "limit=500")} == set(CATEGORIES)


@pytest.mark.parametrize("category", ["stocks", "Gold", "", "gold,", "gold, crypto", "gold;crypto"])
def test_other_categories_are_refused_with_the_allowed_ones(shared: Api, category: str) -> None:
    response = shared.ask("/api/news", params={"category": category})

    refusal(response, 400, "invalid_parameter", field="category", allowed=CATEGORIES)


@pytest.mark.parametrize(
    ("query", "count"), [("", 20), ("&limit=1", 1), ("&limit=21", 21), ("&limit=500", 500)]
)
def test_limit_is_20_by_default_and_500_at_most(shared: Api, query: str, count: int) -> None:
    assert len(items(shared, f"category=macro{query}")) == count


@pytest.mark.parametrize("limit", ["0", "501"])
def test_limit_out_of_range_is_refused_with_the_most(shared: Api, limit: str) -> None:
    refusal(shared.ask(f"/api/news?limit={limit}"), 400, "parameter_out_of_range", field="limit", max=500)


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


def test_expanded_id_tells_items_apart(shared: Api) -> None:
    assert len({item["id"] for item in items(shared, "expand=id&limit=500")}) == len(
        items(shared, "limit=500")
    )


def test_all_expansions_can_be_asked_for_at_once(shared: Api) -> None:
    expanded = items(shared, f"expand={','.join(EXPANSIONS)}")

    assert all(set(item) == FIELDS | set(EXPANSIONS) for item in expanded)
    assert all(item["symbols"] == [] for item in expanded if item["title"] != "Euro firms")


def test_expansion_changes_neither_order_nor_number(shared: Api) -> None:
    assert (
        titles(shared, "limit=30&expand=symbols")
        == titles(shared, "limit=30&expand=id")
        == titles(shared, "limit=30")
    )


@pytest.mark.parametrize("expand", ["author", "", "id,", "ID"])
def test_other_expansions_are_refused_with_the_allowed_ones(shared: Api, expand: str) -> None:
    response = shared.ask("/api/news", params={"expand": expand})

    refusal(response, 400, "invalid_parameter", field="expand", allowed=EXPANSIONS)
