"""Order flow: filled at once, under the candles of its time, and in words where there is none."""

from __future__ import annotations

import re
from math import sin
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from accounts.models import User
from core import clock
from core.times import MINUTE_MS, iso_s
from instruments.catalogue import catalogue
from market.prices import interval_start
from market.prices.order_flow import MinuteFlow
from market.store.checkpoints import FlowToWrite, write_flows
from tests.browser.conftest import OpenPage, beside, look_until
from tests.contract.streams.ticker import Ticker

from .conftest import live

MINUTES = 90


def put_flows(symbol: str, count: int = MINUTES) -> None:
    facts = catalogue.get(symbol)
    first_ms = interval_start(clock.now_ms(), MINUTE_MS) - count * MINUTE_MS
    minutes = [MinuteFlow(first_ms + n * MINUTE_MS, 2.0, 5.0, 3.0 * (n + 1), 0) for n in range(count)]
    write_flows([FlowToWrite(facts.id, False, minute) for minute in minutes])


@pytest.fixture
def filled(publisher: User, ticker: Ticker) -> Ticker:
    for symbol in ("BTCUSD", "EURUSD"):
        put_flows(symbol)
    return ticker


def caption(page: Page) -> Any:
    return page.locator("#flow-caption")


# Where the bars of one time stand on both charts.
PLACES = """async () => {
    const { chart, flow } = await (await import("/static/terminal/terminal.js")).complete;
    const left = (element) => element.getBoundingClientRect().left;
    const lefts = [left(document.getElementById("chart")), left(document.getElementById("flow"))];
    const x = (each, time) => each.chart.timeScale().timeToCoordinate(time);
    const { from, to } = chart.chart.timeScale().getVisibleLogicalRange() ?? { from: 0, to: 0 };
    const seen = chart.bars.slice(Math.max(0, Math.ceil(from)), Math.floor(to));
    return seen.map(({ time }) => [lefts[0] + x(chart, time), lefts[1] + x(flow, time)]);
}"""


def wait_until_aligned(page: Page, at_least: int) -> None:
    """As soon as the page has drawn what it was told to."""

    def are_aligned() -> bool:
        places = page.evaluate(PLACES)
        return len(places) >= at_least and all(
            other is not None and abs(own - other) < 1 for own, other in places
        )

    look_until(page, are_aligned)


# The service's answer, as long as the page is to be looked at: no test waits for hours of candles.
def candles(route: Route) -> None:
    minute_ms = 15 * MINUTE_MS if "15m" in route.request.url else MINUTE_MS
    last_ms = interval_start(clock.now_ms(), minute_ms)
    times = [last_ms - n * minute_ms for n in reversed(range(300))]
    bars = [candle(n) | {"time": iso_s(at)} for n, at in enumerate(times)]
    quote = {"bid": 1.00001, "ask": 1.00003, "spread": 0.00002, "timestamp": iso_s(clock.now_ms())}
    route.fulfill(json={"ohlcv": bars, "quote": quote})


def candle(number: int) -> dict[str, float]:
    """Of a price that goes up and down in waves of 75 candles."""
    begin, end = (round(1 + 0.0005 * sin(each / 12), 5) for each in (number, number + 1))
    high, low = max(begin, end) + 0.00002, min(begin, end) - 0.00002
    return {"open": begin, "high": round(high, 5), "low": round(low, 5), "close": end, "volume": 3}


@pytest.mark.parametrize("width", [360, 1440])
def test_bars_stand_under_the_candles_of_their_time(filled: Ticker, open_page: OpenPage, width: int) -> None:
    page = open_page("/docs", viewport={"width": width, "height": 900})
    page.route("**/api/market/*?*", candles)
    page.goto("/")
    expect(live(page).locator("#flow-caption")).to_contain_text("Order flow of BTCUSD, ")
    page.get_by_role("radio", name="15m").check(force=True)
    expect(page.locator("#flow-pane")).to_contain_text("Delta per 15m bar")
    wait_until_aligned(page, 20)

    page.evaluate(
        """async () => {
            const { chart } = await (await import("/static/terminal/terminal.js")).complete;
            chart.chart.timeScale().setVisibleLogicalRange({ from: 200, to: 280 });
        }"""
    )

    wait_until_aligned(page, 50)


def test_last_hours_stand_there_at_load_and_live_frames_are_added(
    filled: Ticker, open_page: OpenPage
) -> None:
    page = live(open_page("/"))
    expect(caption(page)).to_contain_text("BTCUSD")

    filled("BTCUSD", 3)

    expect(caption(page)).to_contain_text(re.compile(r"cumulative delta \S+ since .*00:00 UTC"))
    bars = "async () => (await (await import('/static/terminal/terminal.js')).complete).flow.bars.length"
    look_until(page, lambda: page.evaluate(bars) >= MINUTES)


def test_symbol_that_was_looked_at_before_is_there_at_once(filled: Ticker, open_page: OpenPage) -> None:
    page = live(open_page("/"))
    expect(caption(page)).to_contain_text("Order flow of BTCUSD, ")
    page.get_by_role("button", name="EURUSD").click()
    expect(caption(page)).to_contain_text("Order flow of EURUSD, ")
    # Nothing is answered any more.
    page.route("**/api/orderflow/**", lambda route: None)

    page.get_by_role("button", name="BTCUSD").click()

    expect(caption(page)).to_contain_text("Order flow of BTCUSD, ")
    expect(caption(page)).not_to_contain_text("loading")


def test_minute_that_was_not_answered_is_asked_for_again(filled: Ticker, open_page: OpenPage) -> None:
    page = open_page("/docs")
    # What is asked for each minute fails: the pane is to ask for everything then.
    page.route("**/api/orderflow/*?start=*", lambda route: route.fulfill(body="no answer of the service"))
    page.clock.install()
    page.goto("/")
    expect(caption(live(page))).to_contain_text("Order flow of BTCUSD, ")
    with page.expect_request("**/api/orderflow/BTCUSD?limit=*"):
        page.clock.run_for(61_000)

    expect(page.locator("#connection li", has_text="Order flow")).to_contain_text("live")


def test_pane_says_that_there_is_none_or_that_it_cannot_be_had(ticker: Ticker, open_page: OpenPage) -> None:
    page = open_page("/docs")
    page.route("**/api/orderflow/BTCUSD?*", lambda route: route.fulfill(json={"items": [], "count": 0}))
    page.route("**/api/orderflow/EURUSD?*", lambda route: route.fulfill(body="no answer of the service"))
    page.goto("/")
    word = live(page).locator("#flow-pane .message")
    nothing = "BTCUSD has no order flow yet. It is computed from live prices, minute by minute."
    expect(word).to_have_text(nothing)
    assert is_whole(page, "#flow-pane .message")

    page.get_by_role("button", name="EURUSD").click()

    failed = "The order flow of EURUSD could not be loaded. The service is not responding. Trying again…"
    expect(word).to_have_text(failed)
    page.route("**/api/orderflow/EURUSD?*", lambda route: route.continue_())
    beside(lambda: put_flows("EURUSD"))
    expect(word).to_be_hidden()
    expect(caption(page)).to_contain_text("Order flow of EURUSD, ")


def is_whole(page: Page, selector: str) -> bool:
    return bool(
        page.evaluate(
            """(selector) => {
                const part = document.querySelector(selector);
                return part.scrollWidth <= part.clientWidth && part.scrollHeight <= part.clientHeight;
            }""",
            selector,
        )
    )


BARS = """async () => {
    const { FlowMinutes } = await import("/static/terminal/flow/minutes.js");
    const minute = (time, sold, bought, sum, absorptions = 0) => ({
        time, bid_volume: sold, ask_volume: bought, cumulative_delta: sum, absorptions, delta: bought - sold,
    });
    const frame = (time, delta, sum) => ({
        time: Date.parse(time), bid_volume: Math.max(0, -delta), ask_volume: Math.max(0, delta),
        cumulative_delta: sum,
    });
    const flow = new FlowMinutes();
    flow.confirm([minute("2026-11-20T13:58:00Z", 1, 0.2, -0.8)]);
    flow.confirm([minute("2026-11-20T13:59:00Z", 0, 0.1, -0.7, 1)]);
    const late = flow.take(frame("2026-11-20T13:59:59Z", 9, 9));
    flow.take(frame("2026-11-20T14:00:30Z", 2, 5.3));
    flow.take(frame("2026-11-20T14:00:40Z", -1, 4.3));
    flow.absorb(Date.parse("2026-11-20T14:01:00Z"));
    flow.take(frame("2026-11-20T14:01:10Z", 1, 5.3));
    const told = ({ delta, sum, absorptions, isWhole }) => [delta, sum, absorptions, isWhole];
    const bars = flow.bars(60).map(told);
    const { delta, sum } = flow.lastBar(300);
    flow.restart([minute("2026-11-20T14:01:00Z", 0, 2, 6.3)]);
    return { late, bars, last: [delta, sum], left: flow.bars(60).map(({ sum }) => sum) };
}"""


def test_minutes_join_what_was_closed_with_what_is_heard(open_page: OpenPage) -> None:
    found = open_page("/docs").evaluate(BARS)

    assert not found["late"]
    # The page came in the middle of 14:00: its delta is that of the running sums, 4.3 − (−0.7).
    assert found["bars"] == [
        [-0.8, -0.8, 0, True],
        [0.1, -0.7, 1, True],
        [5, 4.3, 1, False],
        [1, 5.3, 0, True],
    ]
    assert found["last"] == [6, 5.3]
    assert found["left"] == [6.3]


ABSORBED = """async () => {
    const { flow } = await (await import("/static/terminal/terminal.js")).complete;
    return [true, false].map((hasTrades) => {
        flow.legend.begin("BTCUSD", { digits: 5, hasTrades });
        flow.legend.absorb({ time: 0, side: "ask", price: 1.15955, volume: 9, strength: 3.3 });
        return document.getElementById("absorptions").textContent.replace(/^.*UTC: /, "");
    });
}"""


def test_absorption_is_told_with_its_unit(ticker: Ticker, open_page: OpenPage) -> None:
    assert live(open_page("/terminal?symbol=BTCUSD")).evaluate(ABSORBED) == [
        "Sellers absorbed buying at 1.15955 (volume 9.000, strength 3.3).",
        "Sellers absorbed buying at 1.15955 (9 ticks, strength 3.3).",
    ]
