"""A script that does not arrive, whole or in part: the page says so, and offers to be loaded again."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from accounts.models import User
from tests.client import Server
from tests.contract.streams.publishing import publish_signal

from .audit import violations
from .conftest import PATIENCE_MS, REPORT_VIOLATIONS, look_until
from .terminal.test_terminal import LIVE, beside, publisher, ticker

pytestmark = pytest.mark.also_on("oldest")

__all__ = ("publisher", "ticker")
WORDS = "Part of this page could not be loaded. Reload it"


@pytest.fixture
def page(server: Server, browser: Browser) -> Page:
    """Unwatched: its errors are the point. It may break no policy all the same."""
    context = browser.new_context(base_url=server.url)
    context.set_default_timeout(PATIENCE_MS)
    context.add_init_script(REPORT_VIOLATIONS)
    return context.new_page()


def cut_off(route: Route) -> None:
    whole = route.fetch().text()
    route.fulfill(body=whole[: len(whole) // 2], content_type="text/javascript")


FAULTS: dict[str, Any] = {
    "missing": lambda route: route.fulfill(status=404, body=""),
    "unreachable": lambda route: route.abort("connectionreset"),
    "cut off": cut_off,
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(
    ("path", "module"),
    [
        ("/terminal", "terminal/feed/gains.js"),
        ("/terminal", "terminal/streams/early.js"),
        ("/ledger", "signals_feed/ledger.js"),
    ],
)
def test_page_says_that_a_part_is_missing(
    ticker: Any, publisher: User, page: Page, path: str, module: str, fault: str
) -> None:
    broken: list[str] = []
    page.on("console", lambda said: broken.append(said.text) if said.text.startswith("policy:") else None)
    # The check of the ledger is there once there is something to check.
    beside(lambda: publish_signal("BTCUSD", publisher))
    page.route(f"**/static/{module}", FAULTS[fault])
    page.goto(path)
    notice = page.get_by_role("alert").filter(has_text="Part of this page")
    expect(notice).to_have_text(WORDS)
    expect(page.get_by_text("connecting…")).to_be_hidden()
    assert violations(page) == []

    page.unroute_all()
    notice.get_by_role("button").click()
    expect(notice).to_have_count(0)
    if path == "/terminal":
        expect(page.locator("#connection summary")).to_have_text(LIVE)
    assert broken == []


def test_part_that_is_wanted_later_is_missed_then(ticker: Any, page: Page) -> None:
    page.route("**/static/terminal/chart/tools/picture.js", FAULTS["missing"])
    page.goto("/terminal")
    expect(page.locator("#connection summary")).to_have_text(LIVE)
    expect(page.locator("#unloaded")).to_have_count(0)
    expect(page.locator("#chart-caption")).to_contain_text("candles of")
    page.locator("[data-tool=picture]").click()
    expect(page.locator("#unloaded")).to_have_text(WORDS)
    expect(page.locator("#connection summary")).to_be_visible()


@pytest.mark.also_on("firefox")
@pytest.mark.parametrize("fault", ["missing", "unreachable"])
def test_search_takes_what_is_typed_until_it_can_be_fetched(ticker: Any, page: Page, fault: str) -> None:
    page.route("**/static/terminal/keyboard/palette.js*", FAULTS[fault])
    page.goto("/terminal?symbol=BTCUSD")
    expect(page.locator("#connection summary")).to_have_text(LIVE)
    page.keyboard.press("Control+k")
    page.keyboard.type("eur")
    expect(page.get_by_text("Loading… If prices are live")).to_be_visible()
    expect(page.locator("#unloaded")).to_have_count(0)
    assert violations(page) == []

    page.unroute_all()
    expect(page.get_by_role("option")).to_have_count(1)
    expect(page.locator("#palette [role=status]")).to_have_text("")
    page.keyboard.press("Enter")
    expect(page.locator("#chart-symbol")).to_have_text("EURUSD")
    expect(page.locator("#unloaded")).to_have_count(0)


@pytest.mark.also_on("firefox")
@pytest.mark.parametrize("fault", ["missing", "unreachable"])
def test_picked_signal_is_shown_once_what_shows_it_can_be_fetched(
    ticker: Any, publisher: User, page: Page, fault: str
) -> None:
    beside(lambda: publish_signal("EURUSD", publisher))
    page.route("**/static/terminal/chart/zones/reach.js*", FAULTS[fault])
    page.goto("/terminal?symbol=BTCUSD")
    expect(page.locator("#connection summary")).to_have_text(LIVE)
    signal = page.locator("#signals li.signal")
    with page.expect_request("**/static/terminal/chart/zones/reach.js*"):
        signal.get_by_role("button").click()

    page.unroute_all()
    expect(page.locator("#chart-symbol")).to_have_text("EURUSD")
    expect(signal).to_have_class(re.compile("picked"))
    expect(page.locator("#unloaded")).to_have_count(0)


def test_later_choice_wins_over_a_signal_that_could_not_be_shown_yet(
    ticker: Any, publisher: User, page: Page
) -> None:
    beside(lambda: publish_signal("EURUSD", publisher))
    held: list[Route] = []
    page.route("**/static/terminal/chart/zones/reach.js*", lambda route: held.append(route))
    page.goto("/terminal?symbol=BTCUSD&tf=1m")
    expect(page.locator("#connection summary")).to_have_text(LIVE)
    with page.expect_request("**/static/terminal/chart/zones/reach.js*"):
        page.locator("#signals li.signal").get_by_role("button").click()
    page.keyboard.press("4")
    expect(page).to_have_url(re.compile("symbol=BTCUSD&tf=1h$"))

    look_until(page, lambda: held)
    [route] = held
    with page.expect_response("**/static/terminal/chart/zones/reach.js*"):
        route.continue_()
    page.evaluate("import('/static/terminal/chart/zones/reach.js')")
    expect(page).to_have_url(re.compile("symbol=BTCUSD&tf=1h$"))


def never(route: Route) -> None:
    """The request hangs until its page is closed."""


@pytest.mark.parametrize("fault", [FAULTS["missing"], never])
def test_worker_that_does_not_come_is_missed(ticker: Any, page: Page, fault: Any) -> None:
    page.context.route("**/static/terminal/streams/worker.js", fault)
    page.clock.install()
    page.goto("/terminal")
    page.clock.fast_forward(20_000)
    expect(page.locator("#unloaded")).to_have_text(WORDS)


def test_worker_that_came_is_not_missed(ticker: Any, page: Page) -> None:
    page.clock.install()
    page.goto("/terminal")
    expect(page.locator("#connection summary")).to_have_text(LIVE)
    page.clock.fast_forward(60_000)
    expect(page.locator("#unloaded")).to_have_count(0)
