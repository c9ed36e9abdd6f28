"""Signals and news: among the candles and in their panes, whole, in their units, and in words otherwise."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from accounts.models import User
from core import clock
from core.times import MINUTE_MS, moment
from instruments.models import Instrument
from market.prices import interval_start
from signals_feed.models import Signal
from tests.browser.conftest import OpenPage, beside, look_until
from tests.browser.looks import widths
from tests.contract.streams.publishing import publish_news, publish_signal
from tests.contract.streams.ticker import Ticker
from tests.factories import make_signal, make_user, put_candles

from .conftest import UNREADABLE, live, until_chart
from .test_flow import candles, is_whole


def make_past_signals(count: int) -> None:
    """Closed ones of BTCUSD, buys and sells in turns, of which each second was lost."""
    publishers = [make_user(f"publisher_{n}") for n in range(3)]
    now = moment(interval_start(clock.now_ms(), MINUTE_MS))
    instrument = Instrument.objects.get(symbol="BTCUSD")
    for n in range(count):
        is_buy, won = n % 2 == 0, n % 4 < 2
        risk = Decimal("0.0002") if is_buy else Decimal("-0.0002")
        entry = Decimal("1.0000")
        levels = {"entry": entry, "stop_loss": entry - risk, "take_profit": entry + risk}
        published = now - timedelta(minutes=50 - 3 * n)
        make_signal(
            instrument=instrument,
            user=publishers[n % 3],
            direction="buy" if is_buy else "sell",
            **levels,
            published_at=published,
            status="closed",
            closed_at=published + timedelta(minutes=5),
            close_price=levels["take_profit"] if won else levels["stop_loss"],
            close_reason="take_profit" if won else "stop_loss",
        )


# What is drawn, and whether any label touches a candle, an arrow, an exit or another label.
DRAWN = """async () => {
    const { chart } = await (await import("/static/terminal/terminal.js")).complete;
    const { zones, bars = [], candles } = chart;
    const scale = chart.chart.timeScale();
    const half = scale.options().barSpacing / 2;
    const boxes = bars.map(({ high, low }, at) => {
        const [top, bottom] = [high, low].map((price) => candles.priceToCoordinate(price));
        return { x: scale.logicalToCoordinate(at) - half, y: top, width: 2 * half, height: bottom - top };
    });
    const marks = zones.shapes.flatMap((shape) => shape.marks);
    const meets = (one, other) =>
        one.x < other.x + other.width && other.x < one.x + one.width &&
        one.y < other.y + other.height && other.y < one.y + one.height;
    const crossed = zones.labels.filter((label) =>
        [...boxes, ...marks, ...zones.labels].some((other) => other !== label && meets(label, other)));
    const size = document.getElementById("chart").getBoundingClientRect();
    const outside = zones.labels.filter(({ x, width }) => x < 0 || x + width > size.width);
    const arrows = zones.shapes.filter(({ arrow }) => arrow).map(({ isBuy, outcome, arrow, start }) => {
        const { y: top, height } = boxes[start];
        const isBeside = isBuy ? arrow.y >= top + height : arrow.y + arrow.height <= top;
        return [isBuy ? "buy" : "sell", outcome, isBeside];
    });
    return { labels: zones.labels.map(({ text }) => text), crossed, outside, arrows };
}"""


@pytest.mark.parametrize("width", [360, 1440])
def test_labels_cover_neither_price_nor_each_other(
    ticker: Ticker, publisher: User, open_page: OpenPage, width: int
) -> None:
    beside(lambda: make_past_signals(12))
    page = open_page("/docs", viewport={"width": width, "height": 900})
    page.route("**/api/market/*?*", candles)
    page.goto("/")
    expect(live(page).locator("#signals li.signal")).to_have_count(12)
    expect(page.locator("#chart-caption")).to_contain_text("BTCUSD, 300 candles")
    page.evaluate("new Promise(requestAnimationFrame)")

    drawn = page.evaluate(DRAWN)

    assert len(drawn["labels"]) >= 3
    assert drawn["crossed"] == drawn["outside"] == []


@pytest.mark.also_on("firefox")
def test_arrow_points_where_the_signal_went_and_its_colour_says_how_it_ended(
    ticker: Ticker, publisher: User, open_page: OpenPage
) -> None:
    beside(lambda: make_past_signals(4))
    page = open_page("/docs")
    page.route("**/api/market/*?*", candles)
    page.goto("/")
    expect(live(page).locator("#signals li.signal")).to_have_count(4)
    expect(page.locator("#chart-caption")).to_contain_text("BTCUSD, 300 candles")
    page.evaluate("new Promise(requestAnimationFrame)")

    # A buy stands below its candle, a sell above: whether it won or lost.
    arrows = sorted(page.evaluate(DRAWN)["arrows"])

    assert arrows == [
        ["buy", "lost", True],
        ["buy", "won", True],
        ["sell", "lost", True],
        ["sell", "won", True],
    ]


HIGHLIGHTED = """async () => {
    const { chart } = await (await import("/static/terminal/terminal.js")).complete;
    return [chart.symbol, chart.zones.highlighted];
}"""


def test_signal_that_is_pointed_at_stands_out_and_a_click_brings_its_chart(
    ticker: Ticker, publisher: User, open_page: OpenPage
) -> None:
    signal_id = beside(lambda: publish_signal("EURUSD", publisher))
    page = live(open_page("/"))
    signal = page.locator("#signals li.signal")

    signal.hover()
    assert page.evaluate(HIGHLIGHTED) == ["BTCUSD", signal_id]
    page.locator("#news-title").hover()
    assert page.evaluate(HIGHLIGHTED) == ["BTCUSD", None]

    expect(signal.get_by_role("link")).to_have_attribute("href", f"/signals/{signal_id}")
    signal.get_by_role("button").click()

    expect(page.locator("#chart-symbol")).to_have_text("EURUSD")
    page.locator("#news-title").hover()
    expect(signal).to_have_class(re.compile("picked"))


IN_SIGHT = """(() => {
    const { from, to } = chart.chart.timeScale().getVisibleLogicalRange();
    const [shape] = chart.zones.shapes;
    return Boolean(shape) && shape.start > from && shape.end < to;
})()"""


@pytest.mark.parametrize(("began_h", "timeframe"), [(3, "1m"), (10, "5m")])
def test_click_on_a_closed_signal_shows_all_of_it(
    charted: Ticker, publisher: User, open_page: OpenPage, began_h: int, timeframe: str
) -> None:
    hour_ms = interval_start(clock.now_ms(), 60 * MINUTE_MS)
    put_candles("EURUSD", "5m", [hour_ms - back * 5 * MINUTE_MS for back in range(200, 0, -1)])
    began = moment(interval_start(clock.now_ms(), MINUTE_MS)) - timedelta(hours=began_h)

    def closed_signal() -> Any:
        instrument = Instrument.objects.get(symbol="EURUSD")
        ended = {"status": "closed", "closed_at": began + timedelta(hours=2), "close_reason": "stop_loss"}
        return make_signal(instrument=instrument, user=publisher, published_at=began, **ended)

    beside(closed_signal)
    page = live(open_page("/terminal?symbol=BTCUSD&tf=1m"))

    page.locator("#signals li.signal").get_by_role("button").click()

    until_chart(page, f"chart.symbol === 'EURUSD' && chart.isShown && {IN_SIGHT}")
    expect(page.get_by_role("radio", name=timeframe, exact=True)).to_be_checked()
    # Nobody chose it, so it is not what the page begins with.
    page.goto("/terminal")
    expect(page.get_by_role("radio", name="1m", exact=True)).to_be_checked()


def test_chart_draws_what_ended_even_if_the_list_is_too_short_for_it(
    ticker: Ticker, publisher: User, open_page: OpenPage
) -> None:
    beside(lambda: make_past_signals(4))
    page = open_page("/docs")
    page.route("**/api/market/*?*", candles)
    # The list has none of them.
    page.route(re.compile(r"/api/signals\?status=closed"), lambda route: route.fulfill(json={"items": []}))
    page.goto("/")
    expect(said(live(page), "signals")).to_contain_text("No signals yet.")

    look_until(page, lambda: len(page.evaluate(DRAWN)["arrows"]) == 4)


PAID = """async () => {
    const { chart } = await (await import("/static/terminal/terminal.js")).complete;
    const { shapes, labels } = chart.zones;
    return [shapes.map(({ paid }) => paid).sort(), labels.map(({ text }) => text).sort()];
}"""


def test_chart_draws_from_the_price_paid_and_gives_an_unfilled_signal_no_result(
    ticker: Ticker, publisher: User, open_page: OpenPage
) -> None:
    beside(lambda: make_past_signals(2))
    sell, buy = beside(lambda: [str(each.pk) for each in Signal.objects.order_by("-published_at")])
    page = open_page("/docs")
    page.route("**/api/market/*?*", candles)
    filled = {"fills": {buy: 1.00005}, "unfilled": [sell]}
    page.route("**/signals/filled?*", lambda route: route.fulfill(json=filled))
    page.goto("/")

    labels = ["Buy publisher_0 +1.00 R", "Sell publisher_1 unfilled"]
    look_until(live(page), lambda: page.evaluate(PAID) == [[1, 1.00005], labels])


BROKEN = """() => [...document.querySelectorAll(".feed .phrase, .press .phrase, .flow .phrase, .feed dd")]
    .filter((part) => {
        const range = document.createRange();
        range.selectNodeContents(part);
        return new Set([...range.getClientRects()].map(({ bottom }) => Math.round(bottom))).size > 1;
    }).map(({ textContent }) => textContent)"""
CUT = """() => [...document.querySelectorAll("#signals li, #news li")]
    .filter((item) => item.scrollWidth > item.clientWidth).map(({ textContent }) => textContent)"""


def test_no_phrase_is_broken_and_nothing_is_cut(ticker: Ticker, publisher: User, open_page: OpenPage) -> None:
    beside(lambda: make_past_signals(3))
    beside(lambda: publish_signal("BTCUSD", make_user("a_publisher_with_a_long_name")))
    beside(lambda: publish_news("BTCUSD", "EURUSD", title="Bitcoin leaves the range of the last nine weeks"))
    page = live(open_page("/"))
    expect(page.locator("#signals li.signal")).to_have_count(4)
    expect(page.locator("#news li.story")).to_have_count(2)
    ticker("BTCUSD")
    expect(page.locator("#signals li.signal").first).to_contain_text("now")
    for _ in widths(page, 360, 768, 1440):
        assert page.evaluate(BROKEN) == []
        assert page.evaluate(CUT) == []


def test_chip_of_a_news_item_shows_its_instrument(
    ticker: Ticker, publisher: User, open_page: OpenPage
) -> None:
    beside(lambda: publish_news("EURUSD", title="Euro climbs", sentiment_score=0.4))
    page = live(open_page("/"))
    story = page.locator("#news li.story", has_text="Euro climbs")
    expect(story).to_contain_text("▲ Bullish +0.40")

    story.get_by_role("button", name="EURUSD").click()

    expect(page.locator("#chart-symbol")).to_have_text("EURUSD")


def test_empty_panes_say_so(ticker: Ticker, open_page: OpenPage) -> None:
    page = open_page("/docs")
    page.route("**/api/news?*", lambda route: route.fulfill(json={"items": []}))
    page.goto("/")

    expect(said(live(page), "signals")).to_have_text(
        "No signals yet. New signals appear here as they are published."
    )
    expect(said(page, "news")).to_have_text("No news yet. Items appear here as they are published.")
    assert is_whole(page, "#signals-pane .message")
    assert is_whole(page, "#news-pane .message")


def test_panes_that_fail_say_so_and_come_back(ticker: Ticker, publisher: User, open_page: OpenPage) -> None:
    page = open_page("/docs")
    for path in ("signals", "news"):
        page.route(f"**/api/{path}?*", lambda route: route.fulfill(body=UNREADABLE))
    page.goto("/")
    failed = "could not be loaded. The service is not responding. Trying again…"
    expect(said(live(page), "signals")).to_have_text(f"Signals {failed}")
    expect(said(page, "news")).to_have_text(f"News {failed}")

    page.unroute_all()

    expect(page.locator("#news li.story")).to_contain_text("Bitcoin steadies")
    expect(said(page, "news")).to_be_hidden()
    expect(said(page, "signals")).to_contain_text("No signals yet.")


def said(page: Page, pane: str) -> Any:
    return page.locator(f"#{pane}-pane .message")


UNITS = """async () => {
    const { closedGain, gainNow, gainText } = await import("/static/terminal/feed/gains.js");
    const facts = (unit, pipSize, digits) => ({ unit, pipSize, digits });
    const closed = { direction: "sell", entry: 2651.4, close_price: 2633.4, pnl: 1800, pnl_percent: 0.6789 };
    const now = gainNow({ direction: "buy", entry: 100, stop_loss: 98 }, { bid: 103, ask: 103.5 });
    return [
        closedGain({ ...closed, symbol: "EURUSD" }, facts("pips", 0.0001, 5)),
        closedGain({ ...closed, symbol: "XAUUSD" }, facts("pips", 0.01, 2)),
        closedGain({ ...closed, symbol: "US100" }, facts("points", 1, 1)),
        closedGain({ ...closed, symbol: "BTCUSD" }, facts("percent", 1, 2)),
        closedGain({ ...closed, symbol: "AAPL" }, facts("percent", 0.01, 2)),
        closedGain({ ...closed, symbol: "GONE" }, undefined),
        [now.risks, gainText(now, facts("percent", 0.01, 2))],
    ];
}"""


def test_pips_are_only_where_a_market_counts_in_them(open_page: OpenPage) -> None:
    assert open_page("/docs").evaluate(UNITS) == [
        "+1,800.0 pips",
        "+1,800.0 pips",
        "+1,800.0 points",
        "+0.68%",
        "+0.68%",
        "+0.68%",
        [1.5, "+3.00%"],
    ]


ROOM = """async () => {
    const { placeLabels } = await import("/static/terminal/chart/zones/labels.js");
    const label = (id) => ({ id, width: 60, height: 18, anchor: { x: 100, y: 100 }, isAbove: true });
    const area = { x: 0, y: 0, width: 200, height: 200 };
    const wall = { x: 0, y: 0, width: 200, height: 95 };
    return [
        placeLabels([label("a"), label("b")], [], area).map(({ x, y }) => [x, y]),
        placeLabels([label("a")], [wall], area).map(({ y }) => y > 95),
        placeLabels([label("a")], [{ x: 0, y: 0, width: 200, height: 200 }], area).length,
    ];
}"""


def test_label_without_room_is_left_out_rather_than_laid_over_something(open_page: OpenPage) -> None:
    (first, second), beyond, full = open_page("/docs").evaluate(ROOM)

    assert first == [70, 76]
    assert second[1] + 18 <= first[1] or second[0] >= first[0] + 60 or second[1] >= first[1] + 18
    assert beyond == [True]
    assert full == 0
