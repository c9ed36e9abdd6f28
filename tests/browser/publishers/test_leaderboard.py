"""The list of publishers in a real browser, from a phone to a wide screen."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage
from tests.browser.looks import faults
from tests.client import Server
from tests.factories import NOON, make_instrument
from tests.signals_feed.published_signals import make_filled, make_lucky


@pytest.fixture(autouse=True)
def _publishers(server: Server) -> None:
    make_instrument("EURUSD")
    # Of today: what is old is not ranked.
    begun = (timezone.now() - NOON) / timedelta(minutes=1) - 120
    make_filled(make_lucky("anna", won=40, lost=3, minute=begun), minute=begun + 60)
    make_lucky("bert_with_quite_a_long_name_for_a_column", won=15, lost=30, minute=begun)
    make_lucky("cora", won=2, lost=1, minute=begun)
    make_lucky("desk", won=12, minute=begun, feed="push:desk")


ORDER = ["anna", "cora", "bert", "desk"]


def names(page: Page) -> list[str]:
    found: list[str] = page.locator("[data-publisher]").evaluate_all(
        "rows => rows.map((row) => row.dataset.publisher.slice(0, 4))"
    )
    return found


def test_it_fits_every_screen(open_page: OpenPage) -> None:
    assert faults(open_page("/publishers"), "[data-publisher]", "td, th") == []


def test_a_heading_sorts_and_turns_the_order_round(open_page: OpenPage) -> None:
    page = open_page("/publishers", viewport={"width": 1440, "height": 900})
    assert names(page) == ORDER
    heading = page.get_by_role("columnheader", name="Episodes").first
    heading.get_by_role("link").click()
    expect(heading).to_have_attribute("aria-sort", "descending")
    assert names(page) == ["anna", "bert", "cora", "desk"]
    heading.get_by_role("link").click()
    expect(heading).to_have_attribute("aria-sort", "ascending")
    assert names(page) == ORDER


def test_a_phone_sorts_by_the_links_above(open_page: OpenPage) -> None:
    page = open_page("/publishers", viewport={"width": 360, "height": 740})
    page.get_by_role("navigation", name="Sort the publishers").get_by_role("link", name="Episodes").click()
    page.wait_for_url("**/publishers?sort=episodes")
    assert names(page) == ["anna", "bert", "cora", "desk"]


def test_the_head_leads_to_it(open_page: OpenPage) -> None:
    page = open_page("/status", viewport={"width": 1440, "height": 900})
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Publishers").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Publishers")
