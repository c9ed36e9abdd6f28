"""The chart: the live price, what is under the crosshair, and older candles while one drags."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Page, Request, Route, expect

from core.times import MINUTE_MS
from tests.browser.conftest import OpenPage, look_until
from tests.browser.geometry import misplaced, widths
from tests.contract.streams.ticker import Ticker
from tests.patience import wait_until

from .charted import STORED, charted, drag, of_chart, shown, until_chart
from .test_terminal import live, publisher

__all__ = ("charted", "publisher")
WIDE = {"width": 1440, "height": 900}
LIVE_LINE = "chart.candles.priceLines().find((line) => line.options().axisLabelVisible).options().price"
TO_THE_FIRST = (
    "(chart.chart.timeScale().scrollToPosition(-3000, false), chart.chart.timeScale().options().fixLeftEdge)"
)
# Of the labels of the time scale, which are written around their middle.
CUT_TIMES = """
window.times = 0;
window.cut = [];
const { fillText } = CanvasRenderingContext2D.prototype;
CanvasRenderingContext2D.prototype.fillText = function (text, x, ...more) {
    if (/^\\d\\d:\\d\\d$/.test(text) && this.textAlign === "center" && this.canvas.closest("#chart")) {
        const { a: scale, e: from } = this.getTransform();
        const [middle, half] = [scale * x + from, (scale * this.measureText(text).width) / 2];
        window.times += 1;
        if (middle < half || middle + half > this.canvas.width) window.cut.push([text, middle]);
    }
    return fillText.call(this, text, x, ...more);
};
"""
PHRASES = ".legend > .phrase"


def opened(open_page: OpenPage, path: str = "/terminal?symbol=BTCUSD&tf=1m", **options: Any) -> Page:
    return shown(live(open_page(path, **{"viewport": WIDE, **options})))


def back(page: Page) -> Any:
    return page.get_by_role("button", name="Back to live")


def test_price_tag_stays_at_the_live_price_wherever_the_chart_is(
    charted: Ticker, open_page: OpenPage
) -> None:
    page = opened(open_page)
    expect(back(page)).to_be_hidden()

    drag(page, 400)
    (tick,) = charted("BTCUSD")

    until_chart(page, f"{LIVE_LINE} === {tick.bid}")
    assert of_chart(page, "chart.candles.options().lastValueVisible") is False
    assert of_chart(page, "chart.candles.options().priceLineVisible") is False
    expect(back(page)).to_be_visible()


def test_back_to_live_leads_there_and_goes_away(charted: Ticker, open_page: OpenPage) -> None:
    page = opened(open_page, reduced_motion="reduce")
    drag(page, 400)

    back(page).click()

    expect(back(page)).to_be_hidden()
    assert of_chart(page, "chart.chart.timeScale().scrollPosition()") > 0


def test_back_to_live_brings_the_price_scale_back_too(charted: Ticker, open_page: OpenPage) -> None:
    page = opened(open_page, reduced_motion="reduce")
    box = page.locator("#chart").bounding_box()
    assert box is not None
    scale, middle = (box["x"] + box["width"] - 20, box["y"] + 150), (box["x"] + 300, box["y"] + 150)
    for (x, y), by in ((scale, -60), (middle, 800)):
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x, y + by, steps=6)
        page.mouse.up()

    back(page).click()

    expect(back(page)).to_be_hidden()
    y, height = of_chart(
        page, f"[chart.candles.priceToCoordinate({LIVE_LINE}), chart.chart.panes()[0].getHeight()]"
    )
    assert 0 < y < height


def test_price_scale_that_was_stretched_is_not_that_of_the_next_symbol(
    charted: Ticker, open_page: OpenPage
) -> None:
    page = opened(open_page)
    box = page.locator("#chart").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] - 20, box["y"] + 150)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 20, box["y"] + 90, steps=6)
    page.mouse.up()
    assert of_chart(page, "chart.chart.priceScale('right').options().autoScale") is False

    page.get_by_role("button", name="EURUSD").click()

    until_chart(page, "chart.symbol === 'EURUSD' && chart.isShown")
    assert of_chart(page, "chart.chart.priceScale('right').options().autoScale") is True


def test_no_time_below_the_chart_is_cut_at_an_edge(charted: Ticker, open_page: OpenPage) -> None:
    page = opened(open_page, script=CUT_TIMES)

    for _ in range(12):
        drag(page, 7)
        page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")

    assert page.evaluate("[window.times > 12, window.cut]") == [True, []]


def test_legend_tells_the_last_candle_and_then_the_one_under_the_crosshair(
    charted: Ticker, open_page: OpenPage
) -> None:
    page = opened(open_page)
    (tick,) = charted("BTCUSD")
    close = page.locator(".legend [data-part=close]")
    expect(close).to_have_text(f"{tick.bid:.5f}")

    box = page.locator("#chart").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 100, box["y"] + 200)

    at = of_chart(page, "chart.chart.timeScale().coordinateToTime(100)")
    bar, before = of_chart(
        page,
        f"[chart.bars.find(({{time}}) => time === {at}), chart.bars.findLast(({{time}}) => time < {at})]",
    )
    for part in ("open", "high", "low", "close"):
        expect(page.locator(f".legend [data-part={part}]")).to_have_text(f"{bar[part]:.5f}")
    change = bar["close"] - before["close"]
    expect(page.locator(".legend [data-part=change]")).to_have_text(
        f"+{change:.5f} (+{100 * change / before['close']:.2f}%)"
    )
    page.mouse.move(0, 0)
    expect(close).to_have_text(f"{tick.bid:.5f}")


def test_legend_has_the_colour_of_its_candle(charted: Ticker, open_page: OpenPage) -> None:
    page = opened(open_page)
    told = of_chart(
        page,
        """[[1.3, 1.2], [1, 1.1]].map(([open, close]) => {
        chart.bars = [{ time: 60, open: 1, high: 2, low: 1, close: 1.15, volume: 1 },
            { time: 120, open, high: 2, low: 1, close, volume: 1 }];
        chart.tell("replaced");
        const colour = (part) =>
            getComputedStyle(document.querySelector(`.legend [data-part=${part}]`)).color;
        const { tint } = chart;
        return ["open", "high", "low", "close", "change"].map((part) =>
            ["up", "down", "text"].find((name) => tint[name] === colour(part)));
    })""",
    )
    assert told == [[*["down"] * 4, "text"], [*["up"] * 4, "text"]]


def test_legend_tells_the_last_candle_again_after_a_drag_that_ends_elsewhere(
    charted: Ticker, open_page: OpenPage
) -> None:
    page = opened(open_page)
    box = page.locator("#chart").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 300, box["y"] + 200)
    page.mouse.down()
    page.mouse.move(box["x"] + 320, box["y"] + 200, steps=3)
    page.mouse.move(5, 5, steps=3)
    page.mouse.up()

    (tick,) = charted("BTCUSD")
    expect(page.locator(".legend [data-part=close]")).to_have_text(f"{tick.bid:.5f}")


def test_legend_breaks_between_phrases_alone_and_leaves_the_axis_free(
    charted: Ticker, open_page: OpenPage
) -> None:
    page = opened(open_page)
    for _ in widths(page, 360, 768, 1440, 2560):
        lines = page.eval_on_selector_all(PHRASES, "(all) => all.map((each) => each.getClientRects().length)")
        assert lines == [1] * 6
        assert misplaced(page, ".price .plot", PHRASES) == []
        axis = of_chart(page, "chart.chart.priceScale('right').width()")
        right = "(all) => all.map((each) => each.getBoundingClientRect().right)"
        ends, plot = (page.eval_on_selector_all(each, right) for each in (PHRASES, ".price .plot"))
        assert plot[0] - max(ends) >= axis > 0


def test_older_candles_come_while_one_drags_and_end_at_the_first(
    charted: Ticker, open_page: OpenPage
) -> None:
    page = opened(open_page)
    asked: list[Request] = []
    page.on("request", lambda request: asked.append(request) if "/history?" in request.url else None)
    held = of_chart(page, "chart.bars.at(-100).time")

    for _ in range(9):
        drag(page, 450)
    until_chart(page, "chart.bars.length > 1000")
    until_chart(page, TO_THE_FIRST)

    expect(page.locator(".strip")).to_be_hidden()
    times = of_chart(page, "chart.bars.map(({ time }) => time)")
    assert len(times) >= STORED
    assert times == list(range(times[0], times[0] + 60 * len(times), 60))
    assert held in times
    limits = [int(parse_qs(urlsplit(request.url).query)["limit"][0]) for request in asked]
    assert max(limits) <= 1_000
    assert of_chart(page, "chart.chart.timeScale().getVisibleLogicalRange().from") >= -1


def test_what_is_in_view_stays_while_older_candles_come(charted: Ticker, open_page: OpenPage) -> None:
    page = opened(open_page)
    held: list[Route] = []
    page.route("**/history?*", lambda route: held.append(route))
    view = "chart.chart.timeScale().getVisibleRange()"

    of_chart(page, "chart.chart.timeScale().scrollToPosition(-370, false)")
    expect(page.locator(".strip")).to_be_visible()
    before = of_chart(page, view)
    # What is held goes on then.
    page.unroute("**/history?*")
    until_chart(page, "chart.bars.length > 1000")

    assert of_chart(page, view) == before


def test_reload_of_the_same_candles_keeps_the_older_ones(charted: Ticker, open_page: OpenPage) -> None:
    page = opened(open_page)
    of_chart(page, "chart.chart.timeScale().scrollToPosition(-370, false)")
    until_chart(page, "chart.bars.length > 1000")

    of_chart(page, "chart.reload()")
    shown(page)

    assert of_chart(page, "chart.bars.length") > 1_000


def test_other_symbol_begins_with_candles_of_its_own(charted: Ticker, open_page: OpenPage) -> None:
    page = opened(open_page)
    until_chart(page, TO_THE_FIRST)

    page.goto("/terminal?symbol=EURUSD&tf=1m")
    shown(page)

    assert of_chart(page, "[chart.symbol, chart.chart.timeScale().options().fixLeftEdge]") == [
        "EURUSD",
        False,
    ]


def test_answer_about_a_symbol_that_was_left_says_nothing_of_the_next(
    charted: Ticker, open_page: OpenPage
) -> None:
    page = opened(open_page)
    held: list[Route] = []
    page.route("**/BTCUSD/history?*", lambda route: held.append(route))
    of_chart(page, "chart.chart.timeScale().scrollToPosition(-370, false)")
    look_until(page, lambda: held)

    page.get_by_role("button", name="EURUSD").click()
    until_chart(page, "chart.symbol === 'EURUSD' && chart.isShown")
    for route in held:
        route.fulfill(json={"ohlcv": [], "next": None})
    expect(page.locator(".strip")).to_be_hidden()

    of_chart(page, "chart.chart.timeScale().scrollToPosition(-370, false)")
    until_chart(page, "chart.bars.length > 1000")


def test_title_of_the_tab_has_the_price(charted: Ticker, open_page: OpenPage) -> None:
    page = opened(open_page)

    (tick,) = charted("BTCUSD")

    expect(page).to_have_title(re.compile(rf"^{tick.bid:.5f} BTCUSD "))


def swipe(page: Page, by: tuple[int, int]) -> None:
    """As a finger does that never rests."""
    box = page.locator("#chart").bounding_box()
    assert box is not None
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
    page = opened(open_page, viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
    # The chart takes a finger that rests for a long tap: a slow machine may not turn a swipe into one.
    page.evaluate("window.setTimeout = () => 0")
    first = "chart.chart.timeScale().getVisibleLogicalRange().from"
    before = of_chart(page, first)

    swipe(page, (120, 0))
    wait_until(lambda: of_chart(page, first) < before - 5)
    assert page.evaluate("scrollY") == 0

    swipe(page, (0, -160))
    wait_until(lambda: page.evaluate("scrollY") > 50)


def test_minutes_of_the_test_have_no_hole(charted: Ticker, open_page: OpenPage) -> None:
    page = opened(open_page)

    times = of_chart(page, "chart.bars.map(({ time }) => time)")

    assert {later - earlier for earlier, later in zip(times[:-1], times[1:], strict=True)} == {
        MINUTE_MS // 1000
    }
