"""The page of all publishers: who stands on it, in which order, and with which figures."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from html import unescape

import pytest
from django.test import Client

from accounts.ending.deletion import delete_account
from accounts.models import User
from signals_feed.api.publishers import record_of
from signals_feed.publishers.lookup import find, scorecards
from signals_feed.publishers.scorecards import ENOUGH
from signals_feed.publishers.standings import ORDERS
from tests.factories import NOON, make_signal, make_user
from tests.signals_feed.published_signals import make_publisher

pytestmark = [pytest.mark.django_db, pytest.mark.services]
WON, LOST = Decimal("1.0900"), Decimal("1.0810")


def make_ranked(name: str, won: int = 0, lost: int = 0, *, days: int = 0, cancelled: int = 0) -> User:
    """With so many signals, the first of them published so many days after the others' first."""
    user = make_publisher(name)
    for number in range(won + lost):
        at = NOON + timedelta(days=days, minutes=number)
        is_cancelled = number < cancelled
        make_signal(
            user=user,
            status="closed",
            close_price=WON if number < won else LOST,
            published_at=at,
            closed_at=at,
            close_reason="cancelled" if is_cancelled else "manual",
            cancel_reason="A mistake" if is_cancelled else "",
        )
    return user


def page(query: str = "") -> str:
    return unescape(Client().get(f"/publishers{query}").text)


def names(shown: str) -> list[str]:
    return re.findall(r'data-publisher="([^"]+)"', shown)


def row_of(shown: str, name: str) -> str:
    found = re.search(rf'<tr role="row" data-publisher="{name}">(.*?)</tr>', shown, re.DOTALL)
    assert found, name
    return found[1]


def cells(row: str) -> dict[str, str]:
    return dict(re.findall(r'data-label="([^"]+)">(?:<time[^>]*>)?([^<]*)<', row))


def test_figures_are_those_of_the_scorecard() -> None:
    make_publisher("silent")
    make_ranked("anna", won=2, lost=1, cancelled=2)
    publisher = find("anna")
    assert publisher is not None
    record = record_of(publisher, scorecards.read(publisher))
    assert names(page()) == ["anna"]
    row = row_of(page(), "anna")
    assert 'data-checked="/publishers/anna/checked"' in row
    assert record.expectancy_r is not None
    assert record.win_rate is not None
    shown = cells(row)
    assert shown == {
        "Closed": str(record.signals),
        "Win rate": f"{100 * record.win_rate:.1f}%",
        "Average": f"+{record.expectancy_r:.2f}\xa0R",
        "Total": f"+{record.total_r:.2f}\xa0R",
        "Drawdown": f"{record.max_drawdown_r:.2f}\xa0R",
        "Cancelled": "2",
        "Proof": shown["Proof"],
        "Since": "18 Nov 2026",
    }


def test_too_few_signals_come_last_in_every_order() -> None:
    make_ranked("lucky", won=3)
    make_ranked("steady", won=ENOUGH // 2, lost=ENOUGH - ENOUGH // 2, days=1)
    for query in ("", *(f"?sort={sign}{name}" for name in ORDERS for sign in ("", "-"))):
        ranked, too_few = page(query).split('id="too-few"')
        assert (names(ranked), names(too_few)) == (["steady"], ["lucky"]), query
        assert f"With fewer than {ENOUGH} closed signals" in too_few
        assert '<td role="cell" class="place number">1</td>' in ranked
        assert '<td role="cell" class="place number">–</td>' in too_few


def test_publisher_without_a_result_comes_last_either_way() -> None:
    make_ranked("loser", lost=2)
    make_signal(user=make_user("newcomer"))
    make_ranked("winner", won=1)
    for name in ("win_rate", "average_r", "total_r", "drawdown"):
        for sign in ("", "-"):
            assert names(page(f"?sort={sign}{name}"))[2:] == ["newcomer"]


ORDERED = {
    "name": ["anna", "bert", "cora"],
    "signals": ["cora", "bert", "anna"],
    "win_rate": ["anna", "cora", "bert"],
    "average_r": ["anna", "cora", "bert"],
    "total_r": ["anna", "cora", "bert"],
    "drawdown": ["anna", "bert", "cora"],
    "cancelled": ["anna", "bert", "cora"],
    "since": ["bert", "cora", "anna"],
}


def test_every_column_sorts_best_first_and_turns_round() -> None:
    make_ranked("anna", won=ENOUGH, days=2)
    make_ranked("bert", won=1, lost=ENOUGH)
    make_ranked("cora", won=ENOUGH // 2, lost=ENOUGH, days=1, cancelled=2)
    assert {name: names(page(f"?sort={name}")) for name in ORDERS} == ORDERED
    assert names(page("?sort=-signals")) == ["anna", "bert", "cora"]
    assert names(page("?sort=nonsense")) == names(page()) == ORDERED["average_r"]
    # The place is that of the results in every order.
    for query in ("", "?sort=-average_r", "?sort=name", "?sort=-signals"):
        rows = (row_of(page(query), name) for name in ORDERED["average_r"])
        assert [re.findall(r'class="place number">(.)<', row) for row in rows] == [["1"], ["2"], ["3"]]


def test_publisher_of_open_signals_alone_has_no_figures() -> None:
    make_signal(user=make_publisher("anna"))
    shown = page()
    assert re.findall(r"\?sort=-?signals\"[^>]*>([^<]+)<", shown) == ["Closed", "Closed"]
    row = row_of(shown, "anna")
    assert ("1 active" in row, cells(row)["Closed"]) == (True, "0")
    assert [cells(row)[name] for name in ("Win rate", "Average", "Total", "Drawdown")] == ["–"] * 4


def test_who_may_not_publish_any_more_stays_and_is_said_to_have_stopped() -> None:
    anna, bert, _ = (make_ranked(name, won=1) for name in ("anna", "bert", "cora"))
    anna.user_permissions.clear()
    bert.is_active = False
    bert.save()
    shown = page()
    stopped = ["no longer publishes" in row_of(shown, name) for name in ("anna", "bert", "cora")]
    assert stopped == [True, True, False]


def test_deleted_account_stays_under_its_pseudonym() -> None:
    pseudonym = delete_account(make_ranked("anna", lost=2))
    assert names(page()) == [pseudonym]
    assert cells(row_of(page(), pseudonym))["Closed"] == "2"
