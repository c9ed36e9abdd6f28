"""The chart: the live price, what is under the crosshair, older candles, and words where there are none."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Page, Request, Route, expect

from accounts.models import User
from tests.browser.conftest import OpenPage, beside, look_until
from tests.contract.streams.publishing import publish_signal
from tests.contract.streams.ticker import Ticker
from tests.patience import wait_until

from .conftest import (
    PHONE,
    STORED,
    TOUCHED,
    UNREADABLE,
    box_of,
    choose,
    drag,
    live,
    of_chart,
    opened,
    pull,
    shown,
    until_chart,
)

LIVE_LINE = "chart.candles.priceLines().find((line) => line.options().axisLabelVisible).options().price"
AUTOMATIC = "chart.chart.priceScale('right').options().autoScale"
SCALE = "chart.chart.timeScale()"
BACK = f"{SCALE}.scrollToPosition(-370, false)"
TO_THE_FIRST = f"({SCALE}.scrollToPosition(-3000, false), {SCALE}.options().fixLeftEdge)"
PARTS = ("open", "high", "low", "close")


def test_price_tag_stays_at_the_live_price_and_one_button_leads_back_there(
    charted: Ticker, open_page: OpenPage
) -> None:
    page = opened(open_page, reduced_motion="reduce")
    back, box = page.get_by_role("button", name="Back to live"), box_of(page, "#chart")
    scale = (box["x"] + box["width"] - 20, box["y"] + 150)
    expect(back).to_be_hidden()

    drag(page, 400)
    (tick,) = charted("BTCUSD")
    until_chart(page, f"{LIVE_LINE} === {tick.bid}")
    pull(page, scale, (0, -60))
    pull(page, (box["x"] + 300, box["y"] + 150), (0, 800))
    assert of_chart(page, AUTOMATIC) is False
    back.click()

    expect(back).to_be_hidden()
    assert of_chart(page, f"{SCALE}.scrollPosition()") > 0
    y, height = of_chart(
        page, f"[chart.candles.priceToCoordinate({LIVE_LINE}), chart.chart.panes()[0].getHeight()]"
    )
    assert 0 < y < height

    # A scale that was stretched is not that of the next symbol.
    pull(page, scale, (0, -60))
    assert of_chart(page, AUTOMATIC) is False
    choose(page, "EURUSD")
    until_chart(page, "chart.symbol === 'EURUSD' && chart.isShown")
    assert of_chart(page, AUTOMATIC) is True


COLOURS = """[[1.3, 1.2], [1, 1.1]].map(([open, close]) => {
    chart.bars = [{ time: 60, open: 1, high: 2, low: 1, close: 1.15, volume: 1 },
        { time: 120, open, high: 2, low: 1, close, volume: 1 }];
    chart.tell("replaced");
    const colour = (part) => getComputedStyle(document.querySelector(`.legend [data-part=${part}]`)).color;
    const { tint } = chart;
    return ["open", "high", "low", "close", "change"].map((part) =>
        ["up", "down", "text"].find((name) => tint[name] === colour(part)));
})"""


def test_legend_tells_the_last_candle_or_the_one_under_the_crosshair_in_its_colour(
    charted: Ticker, open_page: OpenPage
) -> None:
    page = opened(open_page)
    part = {name: page.locator(f".legend [data-part={name}]") for name in (*PARTS, "change")}
    (tick,) = charted("BTCUSD")
    expect(part["close"]).to_have_text(f"{tick.bid:.5f}")

    box = box_of(page, "#chart")
    page.mouse.move(box["x"] + 100, box["y"] + 200)

    at = of_chart(page, f"{SCALE}.coordinateToTime(100)")
    bar, before = of_chart(
        page,
        f"[chart.bars.find(({{time}}) => time === {at}), chart.bars.findLast(({{time}}) => time < {at})]",
    )
    for name in PARTS:
        expect(part[name]).to_have_text(f"{bar[name]:.5f}")
    change = bar["close"] - before["close"]
    expect(part["change"]).to_have_text(f"+{change:.5f} (+{100 * change / before['close']:.2f}%)")
    # A drag may end outside the chart.
    pull(page, (box["x"] + 300, box["y"] + 200), (-400, -400))
    (tick,) = charted("BTCUSD")
    expect(part["close"]).to_have_text(f"{tick.bid:.5f}")

    assert of_chart(page, COLOURS) == [[*["down"] * 4, "text"], [*["up"] * 4, "text"]]


def test_older_candles_come_while_one_drags_and_end_at_the_first(
    charted: Ticker, open_page: OpenPage
) -> None:
    page = opened(open_page)
    asked: list[Request] = []
    page.on("request", lambda request: asked.append(request) if "/history?" in request.url else None)
    held = of_chart(page, "chart.bars.at(-100).time")
    view, strip = f"{SCALE}.getVisibleRange()", page.locator(".strip")

    page.route("**/history?*", lambda route: None)
    of_chart(page, BACK)
    expect(strip).to_be_visible()
    before = of_chart(page, view)
    page.unroute("**/history?*")
    until_chart(page, "chart.bars.length > 1000")
    assert of_chart(page, view) == before

    for _ in range(9):
        drag(page, 450)
    until_chart(page, TO_THE_FIRST)
    expect(strip).to_be_hidden()
    times = of_chart(page, "chart.bars.map(({ time }) => time)")
    assert len(times) >= STORED
    assert times == list(range(times[0], times[0] + 60 * len(times), 60))
    assert held in times
    assert max(int(parse_qs(urlsplit(request.url).query)["limit"][0]) for request in asked) <= 1_000
    assert of_chart(page, f"{SCALE}.getVisibleLogicalRange().from") >= -1

    of_chart(page, "chart.reload()")
    assert of_chart(shown(page), "chart.bars.length") > 1_000
    page.goto("/terminal?symbol=EURUSD&tf=1m")
    of_next = of_chart(shown(page), f"[chart.symbol, {SCALE}.options().fixLeftEdge]")
    assert of_next == ["EURUSD", False]


def test_answer_about_a_symbol_that_was_left_says_nothing_of_the_next(
    charted: Ticker, open_page: OpenPage
) -> None:
    page = opened(open_page)
    held: list[Route] = []
    page.route("**/BTCUSD/history?*", lambda route: held.append(route))
    of_chart(page, BACK)
    look_until(page, lambda: held)

    choose(page, "EURUSD")
    until_chart(page, "chart.symbol === 'EURUSD' && chart.isShown")
    for route in held:
        route.fulfill(json={"ohlcv": [], "next": None})
    expect(page.locator(".strip")).to_be_hidden()

    of_chart(page, BACK)
    until_chart(page, "chart.bars.length > 1000")


def swipe(page: Page, by: tuple[int, int]) -> None:
    """As a finger does that never rests."""
    box = box_of(page, "#chart")
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    fingers = page.context.new_cdp_session(page)

    def touch(kind: str, *points: tuple[float, float]) -> None:
        found = [{"x": x, "y": y} for x, y in points]
        fingers.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": found})

    touch("touchStart", (x, y))
    for step in range(1, 9):
        touch("touchMove", (x + by[0] * step / 8, y + by[1] * step / 8))
    touch("touchEnd")


def test_swipe_upwards_scrolls_the_page_and_sideways_drags_the_chart(
    charted: Ticker, open_page: OpenPage
) -> None:
    page = opened(open_page, **TOUCHED)
    # The chart takes a finger that rests for a long tap: a slow machine may not turn a swipe into one.
    page.evaluate("window.setTimeout = () => 0")
    first = f"{SCALE}.getVisibleLogicalRange().from"
    before = of_chart(page, first)

    swipe(page, (120, 0))
    wait_until(lambda: of_chart(page, first) < before - 5)
    assert page.evaluate("scrollY") == 0

    swipe(page, (0, -160))
    wait_until(lambda: page.evaluate("scrollY") > 50)


# As the service answers; a request of the browser that is refused would count as a fault of the page.
UNQUOTED = """
const asked = fetch;
window.fetch = (url, ...more) => `${url}`.includes("market/NEWUSD?") && !window.isQuoted
    ? Promise.resolve(new Response('{"error": {"code": "quote_unavailable"}}', { status: 404 }))
    : asked(url, ...more);
"""


def placeholder(page: Page) -> Any:
    return page.locator(".plot .placeholder")


def test_instrument_without_prices_says_so_and_shows_nothing_of_another(
    unquoted: None, ticker: Ticker, publisher: User, open_page: OpenPage
) -> None:
    beside(lambda: publish_signal("BTCUSD", publisher))
    page = opened(open_page, script=UNQUOTED)
    expect(page.locator("#signals li.signal")).to_have_count(1)

    choose(page, "NEWUSD")

    expect(page.locator("#trading")).to_have_text("No price has arrived yet")
    expect(placeholder(page).get_by_role("status")).to_have_text("No prices for NEWUSD yet.")
    expect(placeholder(page).get_by_role("button")).to_be_hidden()
    assert box_of(page, ".plot .placeholder") == box_of(page, ".price .plot")
    expect(page).not_to_have_title(re.compile("BTCUSD"))
    assert of_chart(page, "[chart.zones.shapes, chart.zones.labels]") == [[], []]
    left = "[chart.candles.data().length, chart.candles.priceFormatter().format(1.08)]"
    assert of_chart(page, left) == [0, ""]

    page.evaluate("window.isQuoted = true")
    ticker("NEWUSD")
    expect(placeholder(page)).to_be_hidden()
    expect(page.locator("#chart-caption")).to_contain_text("NEWUSD, 1 candles")


def test_prices_that_cannot_be_loaded_are_tried_again(charted: Ticker, open_page: OpenPage) -> None:
    page = opened(open_page)
    page.route(re.compile("market/(EURUSD|BTCUSD)[?]"), lambda route: route.fulfill(body=UNREADABLE))
    failed = "could not be loaded. The service is not responding."

    page.keyboard.press("4")
    expect(placeholder(page)).to_contain_text(f"The prices of BTCUSD {failed}")
    page.keyboard.press("1")
    expect(placeholder(page)).to_be_hidden()
    # From here on only a person tries again.
    page.evaluate("window.setTimeout = () => 0")
    choose(page, "EURUSD")
    expect(placeholder(page)).to_contain_text(f"The prices of EURUSD {failed}")

    page.unroute_all()
    placeholder(page).get_by_role("button", name="Try again").click()
    expect(placeholder(page)).to_be_hidden()
    expect(page.locator("#chart-caption")).to_contain_text("EURUSD, ")


def test_panes_are_skeletons_until_something_comes_and_nothing_moves_then(
    charted: Ticker, open_page: OpenPage
) -> None:
    page = open_page("/docs", viewport=PHONE)
    for path in ("market/BTCUSD", "signals"):
        page.route(f"**/api/{path}?*", lambda route: None)
    page.goto("/terminal?symbol=BTCUSD")
    live(page)
    expect(placeholder(page).locator(".skeleton")).to_be_visible()
    expect(page.locator("#signals")).to_have_attribute("aria-busy", "true")
    expect(page.locator("#signals .skeleton").first).to_be_visible()
    parts = ("#price", ".price .plot", "#watch")
    before = [box_of(page, part) for part in parts]

    page.unroute_all()

    shown(page)
    expect(placeholder(page)).to_be_hidden()
    assert [box_of(page, part) for part in parts] == before
