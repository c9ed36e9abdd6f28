"""What stands in the place of the candles: a skeleton, or words that say why there are none."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import Page, Route, expect

from accounts.models import User
from tests.browser.audit import violations
from tests.browser.conftest import OpenPage
from tests.contract.streams.publishing import publish_signal
from tests.contract.streams.ticker import Ticker

from .charted import charted, of_chart, shown
from .test_feed import UNREADABLE
from .test_terminal import beside, live, publisher, ticker
from .test_truth import unquoted

__all__ = ("charted", "publisher", "ticker", "unquoted")
# As the service answers; a request of the browser that is refused would count as a fault of the page.
UNQUOTED = """
const asked = fetch;
window.fetch = (url, ...more) => `${url}`.includes("market/NEWUSD?") && !window.isQuoted
    ? Promise.resolve(new Response('{"error": {"code": "quote_unavailable"}}', { status: 404 }))
    : asked(url, ...more);
"""


def placeholder(page: Page) -> Any:
    return page.locator(".plot .placeholder")


def centre(box: Any) -> tuple[float, float]:
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_instrument_without_prices_says_so_where_another_was(
    unquoted: None, ticker: Ticker, publisher: User, open_page: OpenPage
) -> None:
    beside(lambda: publish_signal("BTCUSD", publisher))
    page = shown(live(open_page("/terminal?symbol=BTCUSD", UNQUOTED)))
    expect(page.locator("#signals li.signal")).to_have_count(1)

    page.get_by_role("button", name="NEWUSD").click()

    said = placeholder(page).get_by_role("status")
    expect(said).to_have_text("No prices for NEWUSD yet.")
    expect(placeholder(page).get_by_role("button")).to_be_hidden()
    words, covered, plot = (
        found.bounding_box() for found in (said, placeholder(page), page.locator(".price .plot"))
    )
    assert covered == plot
    assert all(abs(here - there) < 4 for here, there in zip(centre(words), centre(plot), strict=True))
    assert of_chart(page, "[chart.zones.shapes, chart.zones.labels]") == [[], []]

    page.evaluate("window.isQuoted = true")
    ticker("NEWUSD")
    expect(placeholder(page)).to_be_hidden()
    expect(page.locator("#chart-caption")).to_contain_text("NEWUSD, 1 candles")


def test_prices_that_cannot_be_loaded_are_tried_again(charted: Ticker, open_page: OpenPage) -> None:
    page = shown(live(open_page("/terminal?symbol=BTCUSD&tf=1m")))
    page.route(re.compile("market/(EURUSD|BTCUSD)[?]"), lambda route: route.fulfill(body=UNREADABLE))
    failed = "could not be loaded. The service is not responding."

    page.keyboard.press("4")
    expect(placeholder(page)).to_contain_text(f"The prices of BTCUSD {failed}")
    assert violations(page) == []
    page.keyboard.press("1")
    expect(placeholder(page)).to_be_hidden()
    # From here on only a person tries again.
    page.evaluate("window.setTimeout = () => 0")
    page.get_by_role("button", name="EURUSD").click()
    expect(placeholder(page)).to_contain_text(f"The prices of EURUSD {failed}")

    page.unroute_all()
    placeholder(page).get_by_role("button", name="Try again").click()
    expect(placeholder(page)).to_be_hidden()
    expect(page.locator("#chart-caption")).to_contain_text("EURUSD, ")


def test_chart_is_a_skeleton_until_candles_come_and_nothing_moves(
    charted: Ticker, open_page: OpenPage
) -> None:
    held: list[Route] = []
    page = open_page("/docs", viewport={"width": 360, "height": 740})
    page.route("**/api/market/BTCUSD?*", lambda route: held.append(route))
    page.goto("/terminal?symbol=BTCUSD")
    live(page)
    expect(placeholder(page).locator(".skeleton")).to_be_visible()
    parts = [page.locator(part) for part in ("#price", ".price .plot", "#watch")]
    before = [part.bounding_box() for part in parts]

    page.unroute_all()

    shown(page)
    expect(placeholder(page)).to_be_hidden()
    assert [part.bounding_box() for part in parts] == before
