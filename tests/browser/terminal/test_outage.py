"""What the terminal says while something is not live: which part, since when, and how old its numbers are."""

from __future__ import annotations

import json
import re
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, Route, expect

from accounts.models import User
from core import clock
from status.models import Incident
from tests.browser.conftest import SYMBOLS, OpenPage, beside
from tests.browser.looks import violations
from tests.client import Server
from tests.contract.streams.publishing import publish_signal
from tests.contract.streams.ticker import Ticker
from tests.factories import make_instrument, put_quote

from .conftest import LIVE, UNREADABLE, choose, hear, live, of_chart, summary

WATCHLIST = "**/terminal/watchlist.json"
POLL_MS = 61_000
TAG_COLOR = "chart.candles.priceLines()[0].options().color"


def clocked(open_page: OpenPage) -> Page:
    """With a clock that the test moves."""
    page = open_page("/docs")
    page.clock.install(time=clock.now_ms() / 1000)
    page.goto("/")
    return live(page)


def style(page: Page, selector: str, name: str = "color") -> str:
    """In one look: what is found may be drawn again meanwhile."""
    look = "([selector, name]) => getComputedStyle(document.querySelector(selector))[name]"
    found: str = page.evaluate(look, [selector, name])
    return found


def test_pane_that_is_not_renewed_turns_the_head_amber(ticker: Ticker, open_page: OpenPage) -> None:
    page = open_page("/docs")
    page.route("**/api/news?*", lambda route: route.fulfill(body=UNREADABLE))
    page.goto("/")
    expect(summary(page)).to_have_text("Live except news: no answer")
    expect(page.locator("#connection")).to_have_attribute("data-status", "partial")

    page.unroute_all()
    expect(summary(page)).to_have_text(re.compile(r"^Live( · [\d.]+ ms)?$"))
    expect(page.locator("#connection")).to_have_attribute("data-status", "live")


# A connection of its own, told that the service answers, that it does not, and that a request failed.
CONNECTION = """async () => {
    const { Connection } = await import("/static/terminal/page/connection.js");
    const { Failure } = await import("/static/terminal/api.js");
    const connection = new Connection(document.getElementById("connection").cloneNode(true));
    const lines = () => [...connection.lines.children].map((line) => line.textContent);
    const all = (state) => {
        for (const stream of ["market", "flow", "signals"]) connection.show(stream, state);
        return lines();
    };
    for (const path of ["market/BTCUSD", "news"]) connection.answered(path, null);
    const silent = { status: "live", isSilent: true };
    const states = [{ status: "live" }, silent, { status: "reconnecting" }].map(all);
    connection.answered("news", new DOMException("signal timed out", "TimeoutError"));
    connection.answered("signals", new Failure({ code: "overloaded", message: "Try again shortly." }));
    connection.show("signals", { status: "live" });
    return [states, lines().slice(-2)];
}"""
PANES = ("Prices", "Candles", "Order flow", "Signals", "News")


def test_each_line_of_the_connection_says_what_is_away_in_words_of_the_page(
    ticker: Ticker, open_page: OpenPage
) -> None:
    states, failures = open_page("/").evaluate(CONNECTION)

    said = ("live", "no answer", "reconnecting")
    assert states == [[f"{pane}: {words}" for pane in PANES] for words in said]
    assert failures == ["Signals: service overloaded; Try again shortly.", "News: no answer"]


LOST = """async () => {
    const { Outage } = await import("/static/terminal/page/outage.js");
    const part = () => Object.assign(document.createElement("p"), { hidden: true });
    const banner = part(), announce = part(), panes = part();
    banner.innerHTML = '<i data-part="age"></i><i data-part="cause"></i>';
    const outage = new Outage(banner, announce, panes);
    const said = [], look = (status) => {
        outage.look({ status, states: { market: { message: "Your session has ended." } } });
        said.push(banner.hidden ? "" : banner.textContent);
    };
    let now = performance.now();
    performance.now = () => now;
    look("connecting");
    now += 5_000; look("connecting");
    now += 2_000; look("connecting");
    look("live");
    now += 60_000; look("reconnecting");
    now += 2_000; look("reconnecting");
    now += 1_000; look("reconnecting");
    look("live");
    look("refused");
    return said;
}"""


def test_short_interruption_alarms_nobody(open_page: OpenPage) -> None:
    nothing_yet = "No price has arrived yet."
    assert open_page("/docs").evaluate(LOST) == [
        *("", "", f"{nothing_yet}Connecting…", ""),
        *("", "", f"{nothing_yet}Reconnecting…", ""),
        f"{nothing_yet}Your session has ended.",
    ]


def test_open_incidents_stand_on_the_terminal_while_they_last(ticker: Ticker, open_page: OpenPage) -> None:
    beside(lambda: Incident.objects.create(title="Quotes of indices are late", impact="minor"))
    page = clocked(open_page)
    notices = page.locator("#incidents .notice")
    expect(notices).to_have_text("Quotes of indices are late (degraded) More on the status page")

    beside(lambda: Incident.objects.create(title="Logins fail", impact="major"))
    page.clock.run_for(POLL_MS)
    expect(notices).to_have_count(2)
    expect(page.locator("#incidents .major")).to_contain_text("Logins fail")

    ended = timezone.now() + timedelta(seconds=1)
    beside(lambda: Incident.objects.update(ended_at=ended))
    page.clock.run_for(POLL_MS)
    expect(notices).to_have_count(0)


@pytest.mark.also_on("oldest", "firefox")
def test_feeds_that_die_behind_an_open_socket_turn_the_head_stale(
    ticker: Ticker, open_page: OpenPage
) -> None:
    page = clocked(open_page)
    expect(page.locator("tr.open")).to_have_count(len(SYMBOLS))

    put_quote("EURUSD", at_ms=clock.now_ms() - 300_000)
    beside(lambda: make_instrument("GBPUSD"))
    page.clock.run_for(POLL_MS)
    expect(page.locator("tr.stale")).to_have_count(1)
    expect(page.locator("tr.stale")).to_contain_text("stale")
    expect(page.locator("#watch-added")).to_contain_text("GBPUSD")
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
    expect(page.locator("tr[data-symbol=BTCUSD]")).not_to_contain_text("stale")


def all_closed(route: Route) -> None:
    known = route.fetch().json()
    for row in known["instruments"].values():
        row.update(state="closed", opensMs=clock.now_ms() + 3_600_000)
    route.fulfill(body=json.dumps(known))


# A stream that was opened three times, and could not catch up the second time.
REOPENED = """async () => {
    const { Stream } = await import("/static/terminal/streams/stream.js");
    const stream = new Stream("/ws/market", null, { hear() {}, tell() {} });
    return [[], ["BTCUSD"], []].map((unrecovered) => {
        Object.assign(stream, { socket: { readyState: 0 }, wasAnswered: false, asked: [] });
        stream.on_subscribed({ epoch: "e", unrecovered });
        return [stream.state.reconnects, stream.state.recovered];
    });
}"""


def test_what_was_missed_once_stays_missed(open_page: OpenPage) -> None:
    assert open_page("/docs").evaluate(REOPENED) == [[0, True], [1, False], [2, False]]


def test_closed_markets_are_not_an_outage(ticker: Ticker, open_page: OpenPage) -> None:
    page = clocked(open_page)
    page.route(WATCHLIST, all_closed)
    page.clock.run_for(POLL_MS)
    expect(page.locator("tr.closed")).to_have_count(len(SYMBOLS))
    page.clock.run_for(5_000)
    expect(summary(page)).to_have_text(LIVE)
    expect(page.locator("#outage")).to_be_hidden()


def test_market_that_falls_silent_is_asked_about_at_once(ticker: Ticker, open_page: OpenPage) -> None:
    beside(lambda: make_instrument("GBPUSD", stale_after_s=20))
    page = clocked(open_page)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "watchlist.json" in request.url else None)
    ticker("GBPUSD", 2)
    expect(page.locator("tr.open[data-symbol=GBPUSD]")).to_have_count(1)
    page.clock.run_for(14_000)
    assert asked == []
    with page.expect_request(WATCHLIST):
        page.clock.run_for(31_000)


@pytest.mark.also_on("oldest", "firefox")
def test_every_number_of_an_outage_is_dim_or_says_its_age(
    ticker: Ticker, publisher: User, server: Server, open_page: OpenPage
) -> None:
    beside(lambda: publish_signal("BTCUSD", publisher))
    page = clocked(open_page)
    (tick,) = ticker("BTCUSD")
    outage, result = page.locator("#outage"), page.locator("#signals li.signal [data-part=result]")
    expect(result).to_contain_text(re.compile(r" R.*now$"))
    expect(outage).to_be_hidden()
    dimmed = ("#signals .result", ".legend [data-part=close]", "tr[data-symbol=BTCUSD] [data-cell=bid]")
    before = [style(page, each) for each in dimmed]
    soft = style(page, "tr[data-symbol=BTCUSD] [data-cell=ask]")
    assert soft not in before

    hear(server, is_heard=False)

    expect(result).to_contain_text(re.compile(rf"at {tick.bid:.5f}, \d+ s ago$"))
    expect(page).to_have_title(re.compile(rf"^⚠ Stale · {tick.bid:.5f} BTCUSD · "))
    expect(page.get_by_role("alert")).to_contain_text("No live prices.")
    age = outage.locator("[data-part=age]")
    expect(age).to_have_text(re.compile(r"^Last price \d\d:\d\d:\d\d UTC, \d+ s ago\.$"))
    page.clock.run_for(100_000)
    expect(result).to_contain_text(re.compile(rf"at {tick.bid:.5f}, 1 min \d+ s ago$"))
    expect(age).to_have_text(re.compile(r"UTC, \d+ min \d+ s ago\.$"))
    assert [style(page, each) for each in dimmed] == [soft] * len(dimmed)
    assert of_chart(page, f"{TAG_COLOR} === chart.tint.soft")
    words = r"^No\snew\sprices, last\sprice\s\d\d:\d\d:\d\d\sUTC, .*\sago"
    expect(page.locator("#trading")).to_have_text(re.compile(f"{words}$"))
    expect(page.locator("#flow-pane [data-part=trading]")).to_have_text(re.compile(rf"{words}\.$"))
    assert violations(page) == []

    # For those who see, it is a skeleton while prices come, and words in an outage.
    page.route("**/api/market/EURUSD?*", lambda route: None)
    choose(page, "EURUSD")
    waits = "#price [data-part=message]"
    expect(page.locator(waits)).to_have_text("Loading the prices of EURUSD…")
    assert style(page, waits, "clipPath") == "none"
    expect(page.locator("#chart-caption")).to_have_text("EURUSD: waiting for candles.")

    hear(server, is_heard=True)
    expect(outage).to_be_hidden()
    assert style(page, waits, "clipPath") != "none"
    choose(page, "BTCUSD")
    (tick,) = ticker("BTCUSD")
    expect(page).to_have_title(re.compile(rf"^{tick.bid:.5f} BTCUSD · "))
    expect(result).to_contain_text(re.compile(r" R.*now$"))
    expect(page.get_by_role("alert")).to_have_text("Prices are live again.")
    assert [style(page, each) for each in dimmed] == before
    assert of_chart(page, f"{TAG_COLOR} !== chart.tint.soft")
