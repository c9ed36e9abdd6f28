"""What the terminal says of itself: what is not live, how old prices are, what staff say is wrong."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import Page, Route, expect

from accounts.models import User
from core import clock
from market.streams import market_streams as streams
from status.models import Incident
from tests.browser.audit import violations
from tests.browser.conftest import OpenPage
from tests.client import Server
from tests.contract.streams.ticker import Ticker
from tests.factories import make_instrument

from .charted import of_chart
from .test_terminal import beside, live, publisher, ticker
from .test_watchlist import closed

__all__ = ("closed", "publisher", "ticker")


@pytest.fixture
def unquoted(publisher: User) -> None:
    make_instrument("NEWUSD")


TAG_COLOR = "chart.candles.priceLines()[0].options().color"


def summary(page: Page) -> Any:
    return page.locator("#connection summary")


def color(page: Page, selector: str) -> str:
    found: str = page.evaluate(
        "(selector) => getComputedStyle(document.querySelector(selector)).color", selector
    )
    return found


def hear(server: Server, *, is_heard: bool) -> None:
    async def tell() -> None:
        for stream in streams.STREAMS:
            stream.notify_liveness(is_heard)

    server.run(tell())


def test_pane_that_is_not_renewed_turns_the_head_amber(ticker: Ticker, open_page: OpenPage) -> None:
    page = open_page("/docs")
    is_away = True

    def answer(route: Route) -> None:
        if is_away:
            route.fulfill(body="this is no answer")
        else:
            route.continue_()

    page.route("**/api/news?*", answer)
    page.goto("/")
    expect(summary(page)).to_have_text("Live except news: no answer")
    expect(page.locator("#connection")).to_have_attribute("data-status", "partial")
    assert violations(page) == []

    is_away = False
    expect(summary(page)).to_have_text(re.compile(r"^Live( · [\d.]+ ms)?$"))
    expect(page.locator("#connection")).to_have_attribute("data-status", "live")


# A connection of its own, told that the service answers and then that it does not.
CONNECTION = """async () => {
    const { Connection } = await import("/static/terminal/page/connection.js");
    const connection = new Connection(document.getElementById("connection").cloneNode(true));
    const lines = () => [...connection.lines.children].map((line) => line.textContent);
    const all = (state) => {
        for (const stream of ["market", "flow", "signals"]) connection.show(stream, state);
        return lines();
    };
    for (const path of ["market/BTCUSD", "news"]) connection.answered(path, null);
    return [{ status: "live" }, { status: "live", isSilent: true }, { status: "reconnecting" }].map(all);
}"""
PANES = ("Prices", "Candles", "Order flow", "Signals", "News")


def test_each_line_of_the_connection_says_that_the_service_is_away(
    ticker: Ticker, open_page: OpenPage
) -> None:
    states = live(open_page("/")).evaluate(CONNECTION)

    said = ("live", "no answer", "reconnecting")
    assert states == [[f"{pane}: {words}" for pane in PANES] for words in said]


# A request that timed out, and one that the service refused.
FAILURES = """async () => {
    const { Connection } = await import("/static/terminal/page/connection.js");
    const { Failure } = await import("/static/terminal/api.js");
    const connection = new Connection(document.getElementById("connection").cloneNode(true));
    connection.answered("news", new DOMException("signal timed out", "TimeoutError"));
    connection.answered("signals", new Failure({ code: "overloaded", message: "Try again shortly." }));
    return [...connection.lines.children].map((line) => line.textContent).slice(-2);
}"""


def test_lines_have_no_words_of_the_browser(ticker: Ticker, open_page: OpenPage) -> None:
    assert live(open_page("/")).evaluate(FAILURES) == [
        "Signals: service overloaded; Try again shortly.",
        "News: no answer",
    ]


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


def test_outage_dims_prices_and_counts_their_age(ticker: Ticker, server: Server, open_page: OpenPage) -> None:
    (tick,) = ticker("BTCUSD")
    page = open_page("/docs")
    page.clock.install(time=clock.now_ms() / 1000)
    page.goto("/")
    live(page)
    outage, before = page.locator("#outage"), color(page, "tr[data-symbol=BTCUSD] [data-cell=bid]")
    caption = page.locator("#chart-caption")
    expect(caption).to_contain_text(f"now {tick.bid:.5f}")
    expect(outage).to_be_hidden()

    hear(server, is_heard=False)

    expect(outage).to_be_visible()
    said = outage.locator("[data-part=age]")
    assert color(page, ".legend [data-part=close]") == color(page, ".legend .phrase")
    assert of_chart(page, f"{TAG_COLOR} === chart.tint.soft")
    expect(page).to_have_title(re.compile(rf"^⚠ Stale · {tick.bid:.5f} BTCUSD · "))
    expect(said).to_have_text(re.compile(r"^Last price \d\d:\d\d:\d\d UTC, \d+ s ago\.$"))
    assert color(page, "tr[data-symbol=BTCUSD] [data-cell=bid]") != before
    expect(caption).to_contain_text(f"now {tick.bid:.5f}")
    expect(page.get_by_role("alert")).to_contain_text("No live prices.")
    page.clock.run_for(70_000)
    expect(said).to_have_text(re.compile(r"UTC, \d+ min \d+ s ago\.$"))

    hear(server, is_heard=True)
    expect(outage).to_be_hidden()
    expect(page).to_have_title(re.compile(rf"^{tick.bid:.5f} BTCUSD · "))
    assert of_chart(page, f"{TAG_COLOR} !== chart.tint.soft")
    assert color(page, "tr[data-symbol=BTCUSD] [data-cell=bid]") == before
    expect(page.get_by_role("alert")).to_have_text("Prices are live again.")


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
    page = open_page("/docs")
    page.clock.install()
    page.goto("/")
    shown = live(page).locator("#incidents .notice")
    expect(shown).to_have_text("Quotes of indices are late (degraded) More on the status page")
    assert violations(page) == []

    beside(lambda: Incident.objects.create(title="Logins fail", impact="major"))
    page.clock.run_for(61_000)
    expect(shown).to_have_count(2)
    expect(page.locator("#incidents .major")).to_contain_text("Logins fail")

    ended = timezone.now() + timedelta(seconds=1)
    beside(lambda: Incident.objects.update(ended_at=ended))
    page.clock.run_for(61_000)
    expect(shown).to_have_count(0)


@pytest.mark.parametrize("asked", ["nope", "<b>x</b>"])
def test_unknown_symbol_of_an_address_is_named(ticker: Ticker, open_page: OpenPage, asked: str) -> None:
    page = live(open_page(f"/terminal?symbol={asked}"))
    notice = page.locator("main > .notice")
    expect(notice).to_contain_text(f"There is no instrument {asked.upper()} here.")
    expect(page.locator("#chart-symbol")).to_have_text("BTCUSD")
    page.get_by_role("button", name="EURUSD").click()
    expect(notice).to_have_count(0)


@pytest.mark.parametrize("asked", ["2h", "<b>x</b>"])
def test_unknown_timeframe_of_an_address_is_named(ticker: Ticker, open_page: OpenPage, asked: str) -> None:
    page = live(open_page(f"/terminal?symbol=BTCUSD&tf={asked}"))
    notice = page.locator("main > .notice")
    expect(notice).to_have_text(f"There is no timeframe {asked} here. The chart has 1m, 5m, 15m, 1h, 4h, 1d.")
    expect(page.get_by_role("radio", name="1m", exact=True)).to_be_checked()


def test_symbol_of_an_address_wins_over_the_remembered_one(ticker: Ticker, open_page: OpenPage) -> None:
    page = live(open_page("/terminal?symbol=btcusd"))
    page.get_by_role("button", name="EURUSD").click()
    expect(page.locator("#chart-symbol")).to_have_text("EURUSD")
    page.goto("/terminal?symbol=BTCUSD")
    expect(page.locator("#chart-symbol")).to_have_text("BTCUSD")
    expect(page.locator("main > .notice")).to_have_count(0)
    page.goto("/terminal")
    expect(page.locator("#chart-symbol")).to_have_text("EURUSD")


def test_closed_market_says_so_above_its_chart(closed: str, ticker: Ticker, open_page: OpenPage) -> None:
    page = live(open_page("/terminal?symbol=GBPUSD", viewport={"width": 360, "height": 740}))
    words = page.locator("#trading")
    expect(words).to_have_text(re.compile(r"^Closed, opens\s\w+\s10:00\sUTC, in\s[23]\sd"))
    box, pane = words.bounding_box(), page.locator("#price").bounding_box()
    assert box is not None
    assert pane is not None
    assert pane["x"] <= box["x"]
    assert box["x"] + box["width"] <= pane["x"] + pane["width"]

    page.get_by_role("button", name="BTCUSD").click()
    expect(words).to_have_text("")


def test_instrument_without_a_price_says_so_and_shows_no_other_one(
    unquoted: None, ticker: Ticker, open_page: OpenPage
) -> None:
    page = open_page("/docs")
    page.route("**/api/market/NEWUSD?*", lambda route: None)
    page.goto("/terminal?symbol=BTCUSD")
    live(page)
    expect(page.locator("#chart-caption")).to_contain_text("BTCUSD, ")

    page.get_by_role("button", name="NEWUSD").click()

    expect(page.locator("#trading")).to_have_text("No price has arrived yet")
    expect(page.locator("#chart-caption")).to_contain_text("NEWUSD")
    expect(page).not_to_have_title(re.compile("BTCUSD"))
    prices = """async () => {
        const { chart } = await (await import("/static/terminal/terminal.js")).complete;
        return [chart.candles.data().length, chart.candles.priceFormatter().format(1.08)];
    }"""
    assert page.evaluate(prices) == [0, ""]


def test_arrows_leave_one_step_in_the_history(ticker: Ticker, open_page: OpenPage) -> None:
    page = live(open_page("/terminal?symbol=BTCUSD"))
    for key in ("ArrowDown", "ArrowUp", "ArrowDown"):
        page.keyboard.press(key)
    expect(page.locator("#chart-symbol")).to_have_text("EURUSD")
    page.go_back()
    expect(page.locator("#chart-symbol")).to_have_text("BTCUSD")
    expect(page).to_have_url(re.compile("symbol=BTCUSD"))


def test_words_of_the_panes_are_in_the_zone_of_the_chart(
    closed: str, ticker: Ticker, open_page: OpenPage
) -> None:
    page = live(open_page("/terminal?symbol=GBPUSD", timezone_id="Asia/Tokyo"))
    page.locator("[data-tool=zone] summary").click()
    page.get_by_text("Local time").click()
    words = r"^Closed, opens\s\w+\s19:00\sUTC\+9, in\s[23]\sd(\s\d+\sh)?"
    expect(page.locator("#trading")).to_have_text(re.compile(f"{words}$"))
    expect(page.locator("#flow-pane [data-part=trading]")).to_have_text(re.compile(rf"{words}\.$"))


def test_absorption_is_told_with_its_unit(ticker: Ticker, open_page: OpenPage) -> None:
    page = live(open_page("/terminal?symbol=BTCUSD"))
    told = """async () => {
        const { flow } = await (await import("/static/terminal/terminal.js")).complete;
        return [true, false].map((hasTrades) => {
            flow.legend.begin("BTCUSD", { digits: 5, hasTrades });
            flow.legend.absorb({ time: 0, side: "ask", price: 1.15955, volume: 9, strength: 3.3 });
            return document.getElementById("absorptions").textContent.replace(/^.*UTC: /, "");
        });
    }"""
    assert page.evaluate(told) == [
        "Sellers absorbed buying at 1.15955 (volume 9.000, strength 3.3).",
        "Sellers absorbed buying at 1.15955 (9 ticks, strength 3.3).",
    ]
