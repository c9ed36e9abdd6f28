"""A script that does not arrive, whole or in part: the page says so, and offers to be loaded again."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from accounts.models import User
from tests.browser.conftest import PATIENCE_MS, REPORT_VIOLATIONS, beside, look_until
from tests.browser.looks import violations
from tests.client import Server
from tests.contract.streams.publishing import publish_signal

from .conftest import chosen, live

pytestmark = [pytest.mark.also_on("oldest"), pytest.mark.usefixtures("ticker")]

WORDS = "Part of this page could not be loaded. Reload it"
PALETTE, REACH = "**/static/terminal/keyboard/palette.js*", "**/static/terminal/chart/zones/reach.js*"


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


def missing(route: Route) -> None:
    route.fulfill(status=404, body="")


def unreachable(route: Route) -> None:
    route.abort("connectionreset")


def never(route: Route) -> None:
    """The request hangs until its page is closed."""


@pytest.mark.parametrize(
    ("path", "module", "fault"),
    [
        ("/terminal", "terminal/feed/gains.js", cut_off),
        ("/terminal", "terminal/streams/early.js", missing),
        ("/ledger", "signals_feed/ledger.js", unreachable),
    ],
)
def test_page_says_that_a_part_is_missing(
    publisher: User, page: Page, path: str, module: str, fault: Any
) -> None:
    broken: list[str] = []
    page.on("console", lambda said: broken.append(said.text) if said.text.startswith("policy:") else None)
    # The check of the ledger is there once there is something to check.
    beside(lambda: publish_signal("BTCUSD", publisher))
    page.route(f"**/static/{module}", fault)
    page.goto(path)
    notice = page.get_by_role("alert").filter(has_text="Part of this page")
    expect(notice).to_have_text(WORDS)
    expect(page.get_by_text("connecting…")).to_be_hidden()
    assert violations(page) == []

    page.unroute_all()
    notice.get_by_role("button").click()
    expect(notice).to_have_count(0)
    if path == "/terminal":
        live(page)
    assert broken == []


def test_part_that_is_wanted_later_is_missed_then_and_none_that_came(page: Page) -> None:
    page.route("**/static/terminal/chart/tools/picture.js", missing)
    page.clock.install()
    page.goto("/terminal")
    live(page)
    page.clock.fast_forward(60_000)
    expect(page.locator("#unloaded")).to_have_count(0)
    expect(page.locator("#chart-caption")).to_contain_text("candles of")
    page.locator("[data-tool=picture]").click()
    expect(page.locator("#unloaded")).to_have_text(WORDS)
    expect(page.locator("#connection summary")).to_be_visible()


@pytest.mark.also_on("firefox")
@pytest.mark.parametrize("fault", [missing, unreachable])
def test_search_and_picked_signal_wait_until_what_they_need_can_be_fetched(
    publisher: User, page: Page, fault: Any
) -> None:
    beside(lambda: publish_signal("BTCUSD", publisher))
    for module in (PALETTE, REACH):
        page.route(module, fault)
    page.goto("/terminal?symbol=BTCUSD")
    live(page)
    page.keyboard.press("Control+k")
    page.keyboard.type("eur")
    expect(page.get_by_text("Loading… If prices are live")).to_be_visible()
    page.unroute(PALETTE)
    expect(page.get_by_role("option")).to_have_count(1)
    expect(page.locator("#palette [role=status]")).to_have_text("")
    page.keyboard.press("Enter")
    expect(chosen(page)).to_have_text("EURUSD")

    signal = page.locator("#signals li.signal")
    with page.expect_request(REACH):
        signal.get_by_role("button").click()
    page.unroute(REACH)
    expect(chosen(page)).to_have_text("BTCUSD")
    expect(signal).to_have_class(re.compile("picked"))
    expect(page.locator("#unloaded")).to_have_count(0)


def test_later_choice_wins_over_a_signal_that_could_not_be_shown_yet(publisher: User, page: Page) -> None:
    beside(lambda: publish_signal("EURUSD", publisher))
    held: list[Route] = []
    page.route(REACH, lambda route: held.append(route))
    page.goto("/terminal?symbol=BTCUSD&tf=1m")
    live(page)
    with page.expect_request(REACH):
        page.locator("#signals li.signal").get_by_role("button").click()
    page.keyboard.press("4")
    expect(page).to_have_url(re.compile("symbol=BTCUSD&tf=1h$"))

    look_until(page, lambda: held)
    [route] = held
    with page.expect_response(REACH):
        route.continue_()
    page.evaluate("import('/static/terminal/chart/zones/reach.js')")
    expect(page).to_have_url(re.compile("symbol=BTCUSD&tf=1h$"))


@pytest.mark.parametrize("fault", [missing, never])
def test_worker_that_does_not_come_is_missed(page: Page, fault: Any) -> None:
    page.context.route("**/static/terminal/streams/worker.js", fault)
    page.clock.install()
    page.goto("/terminal")
    page.clock.fast_forward(20_000)
    expect(page.locator("#unloaded")).to_have_text(WORDS)
