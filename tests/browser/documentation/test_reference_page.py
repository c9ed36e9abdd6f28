"""A page of the reference in Chromium: the request by hand, and where everything stands."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from pages.documents.reference import operations
from tests.browser.conftest import OpenPage
from tests.browser.looks import widths
from tests.client import Api, Server
from tests.factories import make_instrument, make_news, make_signal, put_quote

QUOTE = "/docs/api/getQuote"


@pytest.fixture
def quoted(server: Server) -> None:
    """Before the browser: while Playwright runs, this thread may not use the ORM."""
    make_instrument("EURUSD")
    put_quote("EURUSD", bid=1.0841)


@pytest.fixture
def demo(quoted: None, settings: Any) -> None:
    settings.DEMO = settings.PUBLIC_TERMINAL = True


def send(page: Page) -> None:
    page.get_by_role("button", name="Send", exact=True).click()


def test_request_with_a_pasted_key_is_answered(quoted: None, api: Api, open_page: OpenPage) -> None:
    page = open_page(QUOTE)
    page.locator("[data-key]").fill(api.key)
    send(page)

    expect(page.locator(".try output")).to_contain_text("200 in")
    expect(page.locator("[data-body]")).to_contain_text('"bid": 1.0841')
    page.get_by_text("Headers", exact=True).last.click()
    expect(page.locator("[data-headers]")).to_contain_text("x-market-state: ")


def test_request_needs_no_key_in_the_demo(demo: None, open_page: OpenPage) -> None:
    page = open_page(QUOTE)
    send(page)

    expect(page.locator("[data-body]")).to_contain_text('"symbol": "EURUSD"')


def test_required_field_is_asked_for(demo: None, open_page: OpenPage) -> None:
    page = open_page(QUOTE)
    page.locator("input[name=symbol]").fill("")
    send(page)

    assert page.evaluate("document.activeElement.name") == "symbol"
    expect(page.locator(".try output")).to_have_text("")


@pytest.fixture
def published(demo: None) -> None:
    make_signal(status="closed")
    make_news()


# The archive answers no page.
TRIED = [name for name, each in operations().items() if each.tag != "Archive"]


def test_every_form_is_answered_as_it_is_filled_in(published: None, open_page: OpenPage) -> None:
    page = open_page(QUOTE)
    refused = []
    for name in TRIED:
        page.goto(f"/docs/api/{name}")
        with page.expect_response(lambda answer: "/api/" in answer.url) as answered:
            send(page)
        if answered.value.status != 200:
            refused.append(f"{name}: {answered.value.status}")
    assert refused == []


def test_form_of_the_archive_asks_for_a_key_of_ones_own(demo: None, open_page: OpenPage) -> None:
    page = open_page("/docs/api/listArchive")
    expect(page.locator(".try")).to_contain_text("never the page’s own")
    send(page)
    assert page.evaluate("document.activeElement.matches('[data-key]')")


def test_value_that_must_be_chosen_says_where_to_find_one(demo: None, open_page: OpenPage) -> None:
    page = open_page("/docs/api/getSignal")
    expect(page.locator("input[name=id]")).to_have_value("")
    page.locator(".try").get_by_role("link", name="listSignals").click()
    page.wait_for_url("**/docs/api/listSignals")


def test_what_is_told_and_what_is_tried_stand_side_by_side(quoted: None, open_page: OpenPage) -> None:
    page = open_page("/docs/api/getMarket", viewport={"width": 1440, "height": 900})
    told, tried = page.locator(".described").bounding_box(), page.locator(".hands-on").bounding_box()

    assert told is not None
    assert tried is not None
    assert told["x"] + told["width"] + 32 <= tried["x"]
    assert tried["x"] + tried["width"] <= 1440
    assert abs(told["y"] - tried["y"]) <= 1


def test_on_a_phone_they_stand_one_below_the_other(quoted: None, open_page: OpenPage) -> None:
    page = open_page("/docs/api/getMarket", viewport={"width": 360, "height": 740})
    told, tried = page.locator(".described").bounding_box(), page.locator(".hands-on").bounding_box()

    assert told is not None
    assert tried is not None
    assert told["y"] + told["height"] <= tried["y"]
    assert tried["width"] <= 360 - 2 * 16


MEANINGS = """
(_, right = (part) => part.getBoundingClientRect().right) =>
[...document.querySelectorAll(".doc .scroll:has(.fields-table)")].map((box) => ({
  hidden: box.scrollWidth - box.clientWidth,
  meaning: box.querySelector("th:last-child").getBoundingClientRect().width / box.clientWidth,
  overlapping: [...box.querySelectorAll("tbody th")]
    .filter((name) => right(name.firstChild) > name.nextElementSibling.getBoundingClientRect().left)
    .map((name) => name.textContent),
}))
"""


@pytest.mark.parametrize(
    "path", ["/docs/api/getAnalysis", "/docs/api/getSignalProof", "/docs/streams/signals"]
)
def test_meaning_of_a_field_has_half_of_the_width(quoted: None, open_page: OpenPage, path: str) -> None:
    page = open_page(path)
    for _ in widths(page, 700, 1440):
        tables = page.evaluate(MEANINGS)
        assert tables
        for table in tables:
            assert (table["hidden"], table["overlapping"]) == (0, [])
            assert table["meaning"] >= 0.495
