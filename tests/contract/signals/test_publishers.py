"""GET /api/publishers/{user}: every closed signal counts, and nobody learns who else has an account."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from accounts.models import User
from signals_feed.publisher_checks import checked_results
from signals_feed.publishers.lookup import scorecards
from tests.client import Api
from tests.contract.answers import MILLISECONDS, refusal
from tests.databases.queries import count_queries
from tests.factories import NOON, make_instrument, make_signal, make_user, put_quote
from tests.signals_feed.published_signals import make_filled, make_lucky, make_published

pytestmark = pytest.mark.services

REASONS = ("take_profit", "stop_loss", "manual", "expired", "cancelled")
RESULTS = ("1.0900", "1.0810", "1.0842", "1.0874", "1.0826")
"""Of a buy at 1.0842 that risks 0.0032: 1.8125, -1, 0, 1 and -0.5 R."""


@pytest.fixture(scope="module", autouse=True)
def feed(shared: Api) -> Iterator[None]:
    scorecards.clear()
    eurusd, ties = make_instrument("EURUSD"), make_instrument("XAUUSD")
    put_quote(bid=1.0826, ask=1.0827)
    anna = make_user("anna")
    for number, (reason, price) in enumerate(zip(REASONS, RESULTS, strict=True)):
        make_signal(eurusd if number % 2 else ties, anna, **closed(number, reason, price))
    make_signal(eurusd, anna, published_at=NOON + timedelta(hours=9))
    make_filled(make_user("newcomer"), fill_price=None, filled_at=None)
    make_user("silent")
    yield
    scorecards.clear()


def closed(number: int, reason: str, price: str) -> dict[str, Any]:
    return {
        "status": "closed",
        "close_reason": reason,
        "cancel_reason": "Wrong symbol" if reason == "cancelled" else "",
        "close_price": Decimal(price),
        "published_at": NOON + timedelta(hours=number),
        "closed_at": NOON + timedelta(hours=number, minutes=30),
    }


def card(shared: Api, user: str = "anna") -> dict[str, Any]:
    response = shared.ask(f"/api/publishers/{user}")
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


def test_all_signals_count_however_they_ended_and_open_ones_at_their_present_price(shared: Api) -> None:
    body = card(shared)
    assert (body["signals"], body["active"], body["waiting"], body["unfilled"]) == (5, 1, 0, 0)
    assert (body["episodes"], body["too_few"]) == (6, True)
    assert body["closed_by"] == dict.fromkeys(REASONS, 1)
    assert (body["win_rate"], body["expectancy_r"], body["total_r"]) == (0.3333, 0.1354, 0.8125)
    assert (body["max_drawdown_r"], body["max_drawdown_signals"]) == (1.0, 2)
    assert (body["best_excursion_r"], body["worst_excursion_r"]) == (1.8125, -1.0)
    equity = [(point["signals"], point["r"]) for point in body["equity"]]
    assert equity == [(1, 1.8125), (2, 0.8125), (3, 0.8125), (4, 1.8125), (5, 1.3125), (6, 0.8125)]
    assert all(MILLISECONDS.fullmatch(point["time"]) for point in body["equity"])
    assert {each.pop("symbol"): each for each in body["by_symbol"]} == {
        "EURUSD": {"signals": 2, "episodes": 3, "win_rate": 0.3333, "expectancy_r": -0.1667, "total_r": -0.5},
        "XAUUSD": {
            "signals": 3,
            "episodes": 3,
            "win_rate": 0.3333,
            "expectancy_r": 0.4375,
            "total_r": 1.3125,
        },
    }


def test_signal_that_closes_is_in_the_next_answer_and_without_one_there_are_no_rates(shared: Api) -> None:
    body = card(shared, "newcomer")
    assert (body["signals"], body["active"], body["waiting"], body["equity"]) == (0, 1, 1, [])
    assert [body[name] for name in ("win_rate", "expectancy_r", "best_excursion_r")] == [None] * 3
    user = User.objects.get(username="newcomer")
    make_filled(user, minute=7, close_price=Decimal("1.0874"))
    make_filled(user, minute=9, close_price=Decimal("1.0810"))
    assert card(shared, "newcomer")["total_r"] == 0
    # Judged after an outage: it closed before one that was known already.
    make_filled(user, minute=8, close_price=Decimal("1.0874"))
    assert [point["r"] for point in card(shared, "newcomer")["equity"]] == [1, 2, 1]


def test_rank_is_by_the_feed_of_the_fill_and_by_the_new_rules_alone(shared: Api) -> None:
    user = make_lucky("ranked", won=12)
    make_filled(user, minute=30, feed="push:desk", close_price=Decimal("1.0900"))
    lost_mark = {"feed": "kraken", "exit_feed": "push:desk"}
    before = card(shared, "ranked")["ranks"]
    make_filled(user, minute=40, close_price=Decimal("1.0900"), **lost_mark)
    venue, push = card(shared, "ranked")["ranks"]
    assert [each["list"] for each in (venue, push)] == ["venue", "push"]
    assert (push["at_least_r"], push["proven"]) == (None, False)
    assert venue["evidence"] == before[0]["evidence"] > 20
    assert (venue["at_least_r"] > 0, venue["proven"]) == (True, False)
    make_filled(user, minute=50, close_price=Decimal("1.0810"), **lost_mark)
    assert card(shared, "ranked")["ranks"][0]["evidence"] < venue["evidence"]
    assert card(shared)["ranks"] == []


@pytest.mark.parametrize(
    "user", ["silent", "nobody", "ANNA", "anna%20", "anna%00", "%FF", "*", "a" * 5_000, "%D0%B0nna"]
)
def test_who_never_published_is_not_found_whether_or_not_they_have_an_account(shared: Api, user: str) -> None:
    message = refusal(shared.ask(f"/api/publishers/{user}"), 404, "not_found")
    assert "Nobody with this name" in message


def test_former_name_is_answered_with_the_present_record(shared: Api) -> None:
    user = make_published(user=make_user("before")).user
    user.username = "after"
    user.save()
    assert card(shared, "before")["user"] == "after"
    for query in ("", "&start=2020-01-01T00:00:00Z"):
        items = shared.ask(f"/api/signals?user=before{query}").json()["items"]
        assert [each["user"] for each in items] == ["after"]


def test_unchanged_scorecard_costs_one_query_and_a_new_result_five_more(shared: Api) -> None:
    make_filled(make_user("waiting"), fill_price=None, filled_at=None)
    for user in ("anna", "waiting"):
        card(shared, user)
    with count_queries() as unchanged:
        for user in ("anna", "waiting"):
            card(shared, user)
    card(shared, "ranked")
    make_filled(User.objects.get(username="ranked"), minute=60, close_price=Decimal("1.0826"))
    checked_results.clear()
    with count_queries() as changed:
        card(shared, "ranked")
    assert len(unchanged) == 2, unchanged
    assert len(changed) == 6, changed
    # It is added to, and not read again; the other four are of the marks.
    assert "closed_at" in changed[1]
