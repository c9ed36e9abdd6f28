"""What the terminal says while no prices come: of when each of its numbers is."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Page, Route, expect

from accounts.models import User
from core import clock
from tests.browser.audit import violations
from tests.browser.conftest import OpenPage
from tests.client import Server
from tests.contract.streams.publishing import publish_signal
from tests.contract.streams.ticker import Ticker
from tests.factories import make_instrument, put_quote

from .test_terminal import LIVE, SYMBOLS, beside, live, publisher, ticker
from .test_truth import color, hear, summary

pytestmark = pytest.mark.also_on("oldest")

__all__ = ("publisher", "ticker")
WATCHLIST = "**/terminal/watchlist.json"
POLL_MS = 61_000


def opened(open_page: OpenPage) -> Page:
    """With a clock that the test moves."""
    page = open_page("/docs")
    page.clock.install(time=clock.now_ms() / 1000)
    page.goto("/")
    return live(page)


def all_closed(route: Route) -> None:
    answer = route.fetch()
    known = answer.json()
    for row in known["instruments"].values():
        row.update(state="closed", opensMs=clock.now_ms() + 3_600_000)
    route.fulfill(body=json.dumps(known))


@pytest.mark.also_on("firefox")
def test_feeds_that_die_behind_an_open_socket_turn_the_head_stale(
    ticker: Ticker, open_page: OpenPage
) -> None:
    page = opened(open_page)
    expect(page.locator("tr.open")).to_have_count(len(SYMBOLS))

    put_quote("EURUSD", at_ms=clock.now_ms() - 300_000)
    page.clock.run_for(POLL_MS)
    expect(page.locator("tr.stale")).to_have_count(1)
    expect(summary(page)).to_have_text(LIVE)

    put_quote("BTCUSD", at_ms=clock.now_ms() - 300_000)
    page.clock.run_for(POLL_MS)
    expect(summary(page)).to_have_text("Stale: no new prices")
    expect(page.locator("#connection")).to_have_attribute("data-status", "stale")
    expect(page.locator("#outage")).to_be_visible()

    ticker("BTCUSD", 2)
    expect(summary(page)).to_have_text(LIVE)
    page.clock.run_for(1_000)
    expect(page.locator("#outage")).to_be_hidden()


def test_closed_markets_are_not_an_outage(ticker: Ticker, open_page: OpenPage) -> None:
    page = opened(open_page)
    page.route(WATCHLIST, all_closed)
    page.clock.run_for(POLL_MS)
    expect(page.locator("tr.closed")).to_have_count(len(SYMBOLS))
    page.clock.run_for(5_000)
    expect(summary(page)).to_have_text(LIVE)
    expect(page.locator("#outage")).to_be_hidden()


def test_market_that_falls_silent_is_asked_about_at_once(ticker: Ticker, open_page: OpenPage) -> None:
    beside(lambda: make_instrument("GBPUSD", stale_after_s=20))
    page = opened(open_page)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "watchlist.json" in request.url else None)
    ticker("GBPUSD", 2)
    expect(page.locator("tr.open[data-symbol=GBPUSD]")).to_have_count(1)
    page.clock.run_for(14_000)
    assert asked == []
    with page.expect_request(WATCHLIST):
        page.clock.run_for(31_000)


def test_symbol_chosen_in_an_outage_says_in_words_that_it_waits(
    ticker: Ticker, server: Server, open_page: OpenPage
) -> None:
    page = opened(open_page)
    words = page.locator("#price [data-part=said]")
    page.route("**/api/market/EURUSD?*", lambda route: None)
    page.locator("tr[data-symbol=EURUSD] button").click()
    # For those who see, it is a skeleton while prices come.
    expect(words).to_have_text("Loading the prices of EURUSD…")
    assert words.evaluate("(each) => getComputedStyle(each).clipPath") != "none"

    hear(server, is_heard=False)
    expect(page.locator("#outage")).to_be_visible()
    assert words.evaluate("(each) => getComputedStyle(each).clipPath") == "none"


@pytest.mark.also_on("firefox")
def test_every_number_of_an_outage_is_dim_or_says_its_age(
    ticker: Ticker, publisher: User, server: Server, open_page: OpenPage
) -> None:
    beside(lambda: publish_signal("BTCUSD", publisher))
    page = opened(open_page)
    (tick,) = ticker("BTCUSD")
    result = page.locator("#signals li.signal [data-part=result]")
    expect(result).to_contain_text(re.compile(r" R.*now$"))
    dimmed = ("#signals .result", ".legend [data-part=close]", "tr[data-symbol=BTCUSD] [data-cell=bid]")
    before = [color(page, each) for each in dimmed]
    soft = color(page, "tr[data-symbol=BTCUSD] [data-cell=ask]")
    assert soft not in before

    hear(server, is_heard=False)

    expect(result).to_contain_text(re.compile(rf"at {tick.bid:.5f}, \d+ s ago$"))
    page.clock.run_for(100_000)
    expect(result).to_contain_text(re.compile(rf"at {tick.bid:.5f}, 1 min \d+ s ago$"))
    assert [color(page, each) for each in dimmed] == [soft] * len(dimmed)
    words = r"^No\snew\sprices, last\sprice\s\d\d:\d\d:\d\d\sUTC, .*\sago"
    expect(page.locator("#trading")).to_have_text(re.compile(f"{words}$"))
    expect(page.locator("#flow-pane [data-part=trading]")).to_have_text(re.compile(rf"{words}\.$"))
    assert violations(page) == []

    hear(server, is_heard=True)
    ticker("BTCUSD")
    expect(result).to_contain_text(re.compile(r" R.*now$"))
    assert [color(page, each) for each in dimmed] == before
