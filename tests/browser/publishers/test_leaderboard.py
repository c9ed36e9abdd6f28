"""The list of publishers in a real browser, from a phone to a wide screen."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.contrib.auth.models import Permission
from playwright.sync_api import Page, expect

from signals_feed.publishers.scorecards import ENOUGH
from tests.browser.conftest import OpenPage
from tests.browser.looks import faults
from tests.client import Server
from tests.factories import NOON, make_instrument, make_signal, make_user


def make_publisher(name: str, won: int, lost: int) -> None:
    user = make_user(name)
    user.user_permissions.add(Permission.objects.get(codename="publish_signal"))
    for number in range(won + lost):
        at = NOON + timedelta(minutes=number)
        price = Decimal("1.0900" if number % (won + lost) < won else "1.0810")
        make_signal(user=user, status="closed", close_price=price, published_at=at, closed_at=at)
    make_signal(user=user)


@pytest.fixture(autouse=True)
def _publishers(server: Server) -> None:
    make_instrument("EURUSD")
    make_publisher("anna", ENOUGH, 3)
    make_publisher("bert_with_quite_a_long_name_for_a_column", ENOUGH // 2, ENOUGH)
    make_publisher("cora", 2, 1)


def names(page: Page) -> list[str]:
    found: list[str] = page.locator("[data-publisher]").evaluate_all(
        "rows => rows.map((row) => row.dataset.publisher.slice(0, 4))"
    )
    return found


def test_it_fits_every_screen(open_page: OpenPage) -> None:
    assert faults(open_page("/publishers"), "[data-publisher]", "td, th") == []


def test_a_heading_sorts_and_turns_the_order_round(open_page: OpenPage) -> None:
    page = open_page("/publishers", viewport={"width": 1440, "height": 900})
    assert names(page) == ["anna", "bert", "cora"]
    page.get_by_role("columnheader", name="Closed").get_by_role("link").click()
    expect(page.get_by_role("columnheader", name="Closed")).to_have_attribute("aria-sort", "descending")
    assert names(page) == ["bert", "anna", "cora"]
    page.get_by_role("columnheader", name="Closed").get_by_role("link").click()
    expect(page.get_by_role("columnheader", name="Closed")).to_have_attribute("aria-sort", "ascending")
    assert names(page) == ["anna", "bert", "cora"]


def test_a_phone_sorts_by_the_links_above(open_page: OpenPage) -> None:
    page = open_page("/publishers", viewport={"width": 360, "height": 740})
    page.get_by_role("navigation", name="Sort the publishers").get_by_role("link", name="Closed").click()
    page.wait_for_url("**/publishers?sort=signals")
    assert names(page) == ["bert", "anna", "cora"]


def test_the_head_leads_to_it(open_page: OpenPage) -> None:
    page = open_page("/status", viewport={"width": 1440, "height": 900})
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Publishers").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Publishers")
