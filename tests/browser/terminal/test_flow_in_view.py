"""Order flow as it is drawn: in the zone of the chart, on the scale of its bars, and under one crosshair."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from core import clock
from core.times import MINUTE_MS, iso_s
from market.prices import interval_start
from tests.browser.conftest import OpenPage
from tests.contract.streams.ticker import Ticker
from tests.patience import wait_until

from .conftest import REACH, live
from .test_flow import candles, filled

__all__ = ("filled",)

BAR_MS, DAY_MS = 15 * MINUTE_MS, 24 * 60 * MINUTE_MS
BARS = 200
# Minutes of one answer.
FULL = 500
# Without order flow, counted from its newest bar.
GAP = range(20, 30)


def flow_times() -> list[int]:
    """A minute in each of the bars of some 50 hours, which include midnights wherever one looks from."""
    last_ms = interval_start(clock.now_ms(), BAR_MS) - BAR_MS
    return [last_ms - n * BAR_MS for n in reversed(range(BARS)) if n not in GAP]


def flows(route: Route) -> None:
    items = [flow(n, at_ms) for n, at_ms in enumerate(flow_times())]
    wanted = items if "end=" not in route.request.url else []
    route.fulfill(json={"items": wanted, "count": len(wanted)})


def flow(number: int, at_ms: int) -> dict[str, Any]:
    bought, sold = (7.0, 4.0) if number % 3 else (2.0, 6.0)
    sums = {"delta": bought - sold, "cumulative_delta": 10.0 + number % 7}
    absorptions = int(number % 9 == 0)
    return {
        "time": iso_s(at_ms),
        "bid_volume": sold,
        "ask_volume": bought,
        **sums,
        "absorptions": absorptions,
    }


@pytest.fixture
def charted_flow(filled: Ticker, open_page: OpenPage) -> Page:
    """Bars of 15 minutes: three days of candles, and order flow of the last two."""
    page = open_page("/docs", viewport={"width": 1440, "height": 900})
    page.route("**/api/market/*?*", candles)
    page.route("**/api/orderflow/*?*", flows)
    page.goto("/terminal?symbol=BTCUSD&tf=15m")
    expect(live(page).locator("#flow-pane")).to_contain_text("Delta per 15m bar")
    page.evaluate(REACH)
    until(page, "chart.isShown && chart.bars.length >= 300 && flow.bars.length > 100")
    return page


def says(page: Page, expression: str) -> Any:
    return page.evaluate(f"() => {{ const {{ chart, flow }} = window.reached; return {expression}; }}")


def until(page: Page, expression: str) -> None:
    page.wait_for_function(f"() => {{ const {{ chart, flow }} = window.reached; return {expression}; }}")


def scroll(page: Page, first: int, last: int) -> None:
    """To the candles of these numbers."""
    says(page, f"chart.chart.timeScale().setVisibleLogicalRange({{ from: {first}, to: {last} }})")
    for each in ("chart", "flow"):
        until(page, f"Math.abs({each}.chart.timeScale().getVisibleLogicalRange().from - {first}) < 1")
        until(page, f"Math.abs({each}.chart.timeScale().getVisibleLogicalRange().to - {last}) < 1")


def choose_zone(page: Page, value: str) -> None:
    page.locator("[data-tool=zone] summary").click()
    page.locator(f"input[name=zone][value='{value}']").check(force=True)
    page.locator("[data-tool=zone] summary").click()
    page.mouse.move(0, 0)


# Whether the axes of time look alike, which they only do if the same is written at the same places.
ARE_ALIKE = """() => {
    const axis = (id) => [...document.querySelectorAll(`#${id} tr`)].at(-1).querySelector("canvas");
    const [own, other] = ["chart", "flow"].map((id) => axis(id).toDataURL());
    return own === other && own.length > 1000;
}"""


@pytest.mark.parametrize(("zone", "offset"), [("America/New_York", "UTC−"), ("Asia/Tokyo", "UTC+9")])
def test_axis_of_time_is_that_of_the_candles_in_every_zone(
    charted_flow: Page, zone: str, offset: str
) -> None:
    scroll(charted_flow, 180, 290)
    charted_flow.wait_for_function(ARE_ALIKE)

    choose_zone(charted_flow, zone)

    expect(charted_flow.locator("#flow-pane [data-part=opened]")).to_contain_text(offset)
    charted_flow.wait_for_function(ARE_ALIKE)


def test_bars_take_the_room_of_their_scale(charted_flow: Page) -> None:
    scroll(charted_flow, 180, 290)

    height = says(charted_flow, "flow.chart.panes()[0].getHeight()")
    low, high = says(charted_flow, "[-4, 3].map((value) => flow.drawing.deltas.priceToCoordinate(value))")

    # A title above them and a dot below them have room, but no more than that.
    assert 20 < high < 28
    assert 8 < height - low < 16


def test_pane_speaks_of_the_absorption_that_it_shows(charted_flow: Page) -> None:
    scroll(charted_flow, 180, 290)

    assert 3 <= says(charted_flow, "flow.drawing.marks.markers().length") <= 8
    expect(charted_flow.locator("#absorptions")).to_have_text(
        re.compile(r"^Latest absorption at .*\d\d:\d\d UTC\.$")
    )


MARKS = """async () => {
    const { stretchOf, unusual } = await import("/static/terminal/flow/absorption.js");
    const bars = Array.from({ length: 400 }, (_, at) => ({
        time: 300 * at, absorptions: at % 50 === 20 ? 9 : at % 3, bought: at, sold: 0,
    }));
    const marked = (barPx) => unusual(bars, 300, stretchOf(barPx)).map(({ time }) => time / 300);
    return [[12, 7, 6.5, 0.5].map(stretchOf), marked(8), marked(0.5)];
}"""


def test_marks_are_few_and_fewer_when_zoomed_out(open_page: OpenPage) -> None:
    stretches, usual, zoomed_out = open_page("/docs").evaluate(MARKS)

    assert stretches == [32, 32, 32, 512]
    assert usual == [20, 70, 120, 170, 220, 270, 320, 370]
    assert zoomed_out == [370]


def test_line_breaks_at_gaps_and_at_midnight_utc(charted_flow: Page) -> None:
    known = "flow.drawing.sums.data().filter(({ value }) => value !== undefined)"
    points = says(charted_flow, f"{known}.map(({{ time, color }}) => [1000 * time, color === 'transparent'])")

    times, breaks = zip(*points, strict=True)
    assert list(breaks[:-1]) == [
        after - before > BAR_MS or before // DAY_MS != after // DAY_MS
        for before, after in zip(times[:-1], times[1:], strict=True)
    ]
    # Two midnights and a gap, which may be at one of them.
    assert sum(breaks) >= 2


def said(page: Page) -> Locator:
    return page.locator("#flow-pane .message")


def test_pane_says_since_when_order_flow_is_known_and_leads_there(charted_flow: Page) -> None:
    expect(said(charted_flow)).to_be_hidden()

    scroll(charted_flow, 5, 60)

    expect(said(charted_flow)).to_have_text(
        re.compile(r"^Order flow is known since \d+ \w{3}, \d\d:\d\d UTC\.$")
    )
    # An empty scale is not one of millionths.
    assert says(charted_flow, "flow.drawing.deltas.priceScale().getVisibleRange()") == {"from": -1, "to": 1}
    charted_flow.get_by_role("button", name="Show it").click()
    expect(said(charted_flow)).to_be_hidden()
    until(charted_flow, "flow.axis.seen.from < flow.bars[0].time && flow.bars[0].time < flow.axis.seen.to")


def test_pane_says_since_when_where_the_candles_in_view_are_older(charted_flow: Page) -> None:
    known = charted_flow.locator("#flow-pane [data-part=known]")
    expect(known).to_be_empty()

    scroll(charted_flow, 5, 60)
    charted_flow.get_by_role("button", name="Show it").click()

    expect(known).to_have_text(re.compile(r"^Known since (\d+ \w{3}, )?\d\d:\d\d UTC\.$"))


def test_pane_says_where_order_flow_is_missing(charted_flow: Page) -> None:
    # Candle 298 is that of the newest order flow.
    scroll(charted_flow, 298 - 27, 298 - 22)

    expect(said(charted_flow)).to_have_text(
        re.compile(r"^No order flow is known between .*\d\d:\d\d UTC and .*\d\d:\d\d UTC\.$")
    )


TIMES = """async () => {
    const { Zone, timeIn } = await import("/static/terminal/chart/zone.js");
    const at = (zone, text, isDay) => timeIn(new Zone(zone), Date.parse(text) / 1000, isDay);
    const evening = "2025-11-25T20:59:00Z";
    return [at("America/New_York", evening), at("Asia/Kolkata", evening), at("UTC", evening, true),
        timeIn(new Zone("UTC"), Date.now() / 1000).length];
}"""


def test_times_of_other_days_have_a_date_in_the_zone_that_was_chosen(open_page: OpenPage) -> None:
    assert open_page("/docs").evaluate(TIMES) == [
        "25 Nov, 15:59 UTC−5",
        "26 Nov, 02:29 UTC+5:30",
        "25 Nov",
        len("12:34 UTC"),
    ]


# How often, with bars of many heights, a price scale has ink at its upper or lower edge.
CUT = """async () => {
    const { chart, drawing } = window.reached.flow;
    const drawn = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    const times = drawing.deltas.data().slice(-40).map(({ time }) => time);
    const hasInk = (pixels) => pixels.some((value, at) => value !== pixels[at % 4]);
    const isCut = (pane) => {
        const canvas = pane.getHTMLElement().lastElementChild.querySelector("canvas");
        const row = (y) => canvas.getContext("2d").getImageData(4, y, canvas.width - 4, 1).data;
        return [0, canvas.height - 1].some((y) => hasInk(row(y)));
    };
    let cut = 0;
    for (let size = 40; size < 400; size = Math.ceil(1.07 * size)) {
        const points = times.map((time, at) => ({ time, value: at % 2 ? size : -0.7 * size }));
        for (const series of [drawing.deltas, drawing.sums]) series.setData(points);
        await drawn();
        cut += chart.panes().filter(isCut).length;
    }
    return cut;
}"""


def test_no_label_of_the_scales_is_cut(charted_flow: Page) -> None:
    assert charted_flow.evaluate(CUT) == 0


# How much of a chart's height the crosshair's line has at the place of a bar. It is drawn on its own canvas.
LINE = """([id, time]) => {
    const { chart } = window.reached[id];
    const x = Math.round(chart.timeScale().timeToCoordinate(time));
    const canvas = chart.panes()[0].getHTMLElement().querySelectorAll("td")[1].querySelectorAll("canvas")[1];
    const { data } = canvas.getContext("2d").getImageData(x - 1, 0, 3, canvas.height);
    const rows = Array.from({ length: canvas.height }, (_, y) => data.slice(12 * y, 12 * y + 12));
    return rows.filter((row) => row.some(Boolean)).length / rows.length;
}"""
SCALES = """[chart, flow].map(({ chart: each }) => {
    const scale = each.priceScale("right");
    return [scale.width(), scale.getVisibleRange()];
})"""


@pytest.mark.parametrize("pane", ["chart", "flow"])
def test_crosshair_is_in_both_charts(charted_flow: Page, pane: str) -> None:
    scroll(charted_flow, 200, 260)
    before = says(charted_flow, SCALES)
    time = says(charted_flow, "chart.bars[245].time")
    close = says(charted_flow, "chart.bars[245].close.toFixed(chart.digits)")
    opened = says(charted_flow, f"flow.axis.zone.mark({time}, 3)")
    x = says(charted_flow, f"chart.chart.timeScale().timeToCoordinate({time})")
    box = charted_flow.locator(f"#{pane}").bounding_box()
    assert box is not None

    charted_flow.mouse.move(box["x"] + x - 20, box["y"] + 60)
    until(charted_flow, "Boolean(flow.crosshair)")
    charted_flow.mouse.move(box["x"] + x, box["y"] + 60)

    expect(charted_flow.locator("#flow-pane [data-part=opened]")).to_contain_text(opened)
    expect(charted_flow.locator("#price [data-part=close]")).to_have_text(close)
    for each in ("chart", "flow"):
        charted_flow.wait_for_function(f"(given) => ({LINE})(given) > 0.4", arg=[each, time])
    assert says(charted_flow, SCALES) == before

    charted_flow.mouse.move(0, 0)

    for each in ("chart", "flow"):
        charted_flow.wait_for_function(f"(given) => ({LINE})(given) === 0", arg=[each, time])


@pytest.mark.parametrize("pane", ["chart", "flow"])
def test_crosshair_is_at_one_time_after_the_bars_have_moved_below_it(charted_flow: Page, pane: str) -> None:
    scroll(charted_flow, 200, 260)
    x = says(charted_flow, "chart.chart.timeScale().logicalToCoordinate(245)")
    box = charted_flow.locator(f"#{pane}").bounding_box()
    assert box is not None
    charted_flow.mouse.move(box["x"] + x - 20, box["y"] + 60)
    until(charted_flow, "Boolean(flow.crosshair)")
    charted_flow.mouse.move(box["x"] + x, box["y"] + 60)

    scroll(charted_flow, 185, 245)

    # In one look: older candles may come in before it, and then the same bar has another number.
    until(
        charted_flow,
        f"""((time) => document.querySelector("#flow-pane [data-part=opened]").textContent
            .includes(flow.axis.zone.mark(time, 3))
            && ["chart", "flow"].every((each) => ({LINE})([each, time]) > 0.4)
        )(chart.chart.timeScale().coordinateToTime({x}))""",
    )


def test_glance_at_an_instrument_asks_for_nothing_old(filled: Ticker, open_page: OpenPage) -> None:
    """Requests of a page are limited: arrows through the watchlist may not use them up."""
    asked: list[str] = []

    def newest(route: Route) -> None:
        if "end=" in route.request.url:
            asked.append(route.request.url)
        last_ms = interval_start(clock.now_ms(), MINUTE_MS) - MINUTE_MS
        items = [flow(n, last_ms - n * MINUTE_MS) for n in reversed(range(FULL))]
        route.fulfill(json={"items": items if "end=" not in route.request.url else [], "count": FULL})

    page = open_page("/docs")
    page.route("**/api/market/*?*", candles)
    page.route("**/api/orderflow/*?*", newest)
    page.clock.install()
    page.goto("/terminal?symbol=BTCUSD&tf=15m")
    expect(live(page).locator("#flow-pane")).to_contain_text("Delta per 15m bar")
    page.evaluate(REACH)
    until(page, "chart.isShown && flow.history.isComplete")
    assert any("BTCUSD" in url for url in asked)
    page.clock.pause_at(page.evaluate("Date.now()") / 1000 + 5)

    page.get_by_role("button", name="EURUSD").click()
    wait_until(lambda: says(page, "flow.history.hasLoaded && chart.isShown"))
    page.clock.run_for(300)
    assert not [url for url in asked if "EURUSD" in url]

    page.clock.run_for(2_000)
    wait_until(lambda: says(page, "flow.history.isComplete"))
    assert [url for url in asked if "EURUSD" in url]
