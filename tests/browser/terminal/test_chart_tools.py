"""The row of tools: indicators, scale, zone, picture, full screen, and the address of what is shown."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from tests.browser.audit import violations
from tests.browser.conftest import OpenPage
from tests.browser.geometry import misplaced, widths
from tests.contract.streams.ticker import Ticker

from .charted import charted, drag, of_chart, shown, until_chart
from .test_chart import opened
from .test_terminal import publisher

__all__ = ("charted", "publisher")
MEAN = "chart.bars.slice(-20).reduce((sum, { close }) => sum + close, 0) / 20"
# What is drawn on canvases that are not in the page.
WRITTEN = """
window.written = [];
const { fillText } = CanvasRenderingContext2D.prototype;
CanvasRenderingContext2D.prototype.fillText = function (text, ...more) {
    if (!this.canvas.isConnected) window.written.push(text);
    return fillText.call(this, text, ...more);
};
"""
# Figures at the axes of prices, and how far they are from the upper and the lower edge of their pane.
FIGURES = """
window.figures = new Set();
{
    const { fillText } = CanvasRenderingContext2D.prototype;
    CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...more) {
        if (/^[\\u2212\\d,.]+$/.test(text) && this.canvas.closest("#chart") && this.textAlign !== "center") {
            const { d: scale, f: from } = this.getTransform();
            const { actualBoundingBoxAscent: up, actualBoundingBoxDescent: down } = this.measureText(text);
            const at = scale * y + from;
            window.figures.add([text, at - scale * up, this.canvas.height - at - scale * down]);
        }
        return fillText.call(this, text, x, y, ...more);
    };
}
"""
# How many tags stand on the axis of each pane.
TAGGED = """chart.chart.panes().map((pane) => pane.getSeries().flatMap((each) => [
    ...each.priceLines().filter((line) => line.options().axisLabelVisible),
    ...(each.options().lastValueVisible ? [each] : []),
]).length)"""
# The value on the axis of a pane.
TAG = "chart.chart.panes()[1].getSeries()[0].priceLines().at(-1).options().price"
RANGE = "chart.chart.panes()[1].getSeries()[0].priceScale().getVisibleRange()"
TOOLS = ".tools > .choice label, .tools > .menu > summary, .tools > .tool"


def tool(page: Page, name: str) -> Any:
    return page.locator(f"[data-tool={name}]")


def switch_on(page: Page, *names: str) -> None:
    tool(page, "indicators").locator("summary").click()
    for name in names:
        page.get_by_role("checkbox", name=name).check()
    page.keyboard.press("Escape")
    expect(page.get_by_role("checkbox", name=names[0])).to_be_hidden()
    # The mouse would be over the chart now, and the legend about the candle there.
    page.mouse.move(0, 0)


def row(page: Page, name: str) -> Any:
    return page.locator(".study", has_text=name)


def test_indicators_are_drawn_told_and_remembered(charted: Ticker, open_page: OpenPage) -> None:
    page = opened(open_page)

    switch_on(page, "SMA", "RSI", "MACD")

    assert of_chart(page, "chart.chart.panes().map((pane) => pane.getSeries().length)") == [3, 1, 3]
    assert of_chart(page, TAGGED) == [1, 1, 1]
    mean = of_chart(page, MEAN)
    expect(row(page, "SMA 20")).to_contain_text(f"{mean:.5f}")
    expect(row(page, "RSI 14")).to_contain_text(re.compile(r"\d\.\d\d"))
    page.reload()
    shown(page)
    expect(page.locator(".study")).to_have_count(3)
    expect(page.locator(".count")).to_have_text("3")


def test_logarithmic_scale_is_that_of_the_price_alone(charted: Ticker, open_page: OpenPage) -> None:
    page = opened(open_page)
    tool(page, "log").click()

    switch_on(page, "RSI")

    for is_log in (True, False):
        modes = "chart.chart.panes().map((pane) => pane.getSeries()[0].priceScale().options().mode)"
        assert of_chart(page, modes) == [int(is_log), 0]
        until_chart(page, f"{RANGE}.from >= -30 && {RANGE}.to <= 130")
        tool(page, "log").click()


@pytest.mark.parametrize("width", [360, 1440, 2560])
def test_no_figure_at_the_axis_is_cut_or_impossible(charted: Ticker, open_page: OpenPage, width: int) -> None:
    page = open_page("/docs", viewport={"width": width, "height": 900})
    page.add_init_script(FIGURES)
    page.goto("/terminal?symbol=BTCUSD&tf=1m")
    shown(page)
    switch_on(page, "RSI", "MACD")
    charted("BTCUSD", 20)
    until_chart(page, "window.figures.size > 12")
    figures = page.evaluate("[...window.figures]")
    assert [(text, above, below) for text, above, below in figures if min(above, below) < 0] == []
    assert {"100.00", "0.00"} & {text for text, _, _ in figures}
    assert "120.00" not in {text for text, _, _ in figures}


def test_tag_of_an_indicator_stays_at_the_value_of_now(charted: Ticker, open_page: OpenPage) -> None:
    page = opened(open_page)
    switch_on(page, "RSI")
    expect(row(page, "RSI 14")).to_contain_text(f"{of_chart(page, TAG):.2f}")

    drag(page, 600)

    assert of_chart(page, "chart.chart.timeScale().getVisibleLogicalRange().to < chart.bars.length - 10")
    until_chart(page, f"{TAG} === chart.chart.panes()[1].getSeries()[0].data().at(-1).value")


def test_indicators_go_along_with_live_prices(charted: Ticker, open_page: OpenPage) -> None:
    page = opened(open_page)
    switch_on(page, "SMA", "EMA", "Bollinger", "VWAP", "RSI", "MACD")

    before = of_chart(page, MEAN)

    charted("BTCUSD", 50)

    # In one look: prices arrive between two of them.
    told = "[...document.querySelectorAll('.study')].map(({ textContent }) => textContent.trim())"
    until_chart(page, f"{MEAN} !== {before} && {told}.includes('SMA 20' + ({MEAN}).toFixed(5))")


def test_indicator_is_told_for_the_candle_under_the_crosshair(charted: Ticker, open_page: OpenPage) -> None:
    page = opened(open_page)
    switch_on(page, "SMA")
    box = page.locator("#chart").bounding_box()
    assert box is not None

    page.mouse.move(box["x"] + 100, box["y"] + 200)

    at = of_chart(
        page, "chart.bars.findIndex(({ time }) => time === chart.chart.timeScale().coordinateToTime(100))"
    )
    mean = of_chart(
        page, f"chart.bars.slice({at} - 19, {at} + 1).reduce((sum, {{ close }}) => sum + close, 0) / 20"
    )
    expect(row(page, "SMA 20")).to_contain_text(f"{mean:.5f}")


def test_length_of_an_indicator_is_chosen_and_nonsense_refused(charted: Ticker, open_page: OpenPage) -> None:
    page = opened(open_page)
    switch_on(page, "SMA")
    tool(page, "indicators").locator("summary").click()
    length = page.get_by_role("spinbutton", name="SMA: length")

    length.fill("5")
    length.press("Tab")
    expect(row(page, "SMA 5")).to_be_visible()
    for nonsense in ("-3", "0", "501", "2.5", ""):
        length.fill(nonsense)
        length.press("Tab")
        expect(length).to_have_value("5")
        expect(page.locator(".allowed:visible")).to_have_text("Allowed: 1 to 500, whole numbers")
    expect(row(page, "SMA 5")).to_be_visible()
    length.fill("6")
    length.press("Tab")

    expect(row(page, "SMA 6")).to_be_visible()
    expect(page.locator(".allowed:visible")).to_have_count(0)


def test_long_indicator_brings_the_candles_that_it_needs(charted: Ticker, open_page: OpenPage) -> None:
    page = opened(open_page)
    switch_on(page, "SMA")
    tool(page, "indicators").locator("summary").click()
    length = page.get_by_role("spinbutton", name="SMA: length")

    length.fill("500")
    length.hover()
    assert length.evaluate("(field) => field.scrollWidth <= field.clientWidth")
    length.press("Tab")

    first = "Math.max(0, Math.ceil(chart.chart.timeScale().getVisibleLogicalRange().from))"
    values = "chart.parts.find(({ shown }) => shown?.get?.('sma')).shown.get('sma').running.values"
    until_chart(page, f"{values}[{first}].average !== undefined")


def test_switched_off_nothing_of_an_indicator_is_left(charted: Ticker, open_page: OpenPage) -> None:
    page = opened(open_page)
    switch_on(page, "RSI")

    tool(page, "indicators").locator("summary").click()
    page.get_by_role("checkbox", name="RSI").uncheck()

    expect(page.locator(".study")).to_have_count(0)
    assert of_chart(page, "chart.chart.panes().length") == 1


def test_logarithmic_scale_is_switched_by_keyboard_and_remembered(
    charted: Ticker, open_page: OpenPage
) -> None:
    page = opened(open_page)

    page.keyboard.press("Alt+l")

    expect(tool(page, "log")).to_have_attribute("aria-pressed", "true")
    page.reload()
    shown(page)
    assert of_chart(page, "chart.chart.priceScale('right').options().mode") == 1


def test_zone_changes_what_is_written_and_never_the_data(charted: Ticker, open_page: OpenPage) -> None:
    page = opened(open_page, timezone_id="Asia/Kolkata")
    last = "chart.bars.at(-2).time"
    written = f"chart.chart.options().localization.timeFormatter({last})"
    marked = f"chart.chart.timeScale().options().tickMarkFormatter({last}, 3)"
    in_utc = of_chart(page, marked)
    before = of_chart(page, last)

    tool(page, "zone").locator("summary").click()
    page.get_by_text("Local time").click()
    page.keyboard.press("Escape")
    expect(page.get_by_text("Local time")).to_be_hidden()

    expect(tool(page, "zone").locator("summary")).to_contain_text("UTC+5:30")
    minutes = [
        int(hour) * 60 + int(minute)
        for hour, minute in (in_utc.split(":"), of_chart(page, marked).split(":"))
    ]
    assert (minutes[1] - minutes[0]) % 1440 == 330
    assert of_chart(page, written).endswith(of_chart(page, marked))
    assert of_chart(page, f"chart.bars.some(({{ time }}) => time === {before})")
    page.reload()
    expect(tool(page, "zone").locator("summary")).to_contain_text("UTC+5:30")


def test_menu_closes_by_escape_and_by_a_click_elsewhere(charted: Ticker, open_page: OpenPage) -> None:
    page = opened(open_page)
    zone = tool(page, "zone")

    zone.locator("summary").click()
    page.keyboard.press("Escape")
    expect(zone.locator(".panel")).to_be_hidden()
    expect(zone.locator("summary")).to_be_focused()
    zone.locator("summary").click()
    page.locator("#chart-symbol").click()

    expect(zone.locator(".panel")).to_be_hidden()


def test_picture_says_what_it_shows(
    settings: Any, charted: Ticker, open_page: OpenPage, tmp_path: Path
) -> None:
    settings.DEMO = False
    page = opened(open_page, script=WRITTEN)
    switch_on(page, "SMA", "MACD")

    with page.expect_download() as download:
        tool(page, "picture").click()

    assert re.fullmatch(r"BTCUSD-1m-\d{4}-\d\d-\d\dT\d{6}Z\.png", download.value.suggested_filename)
    download.value.save_as(tmp_path / "picture.png")
    written = page.evaluate("window.written")
    assert {"BTCUSD · 1m", "SMA 20", "MACD 12 26 9", "Tickwire"} < set(written)
    assert not {"Demo: a made-up market", "Logarithmic scale"} & set(written)
    assert {text.split()[0] for text in written} > {"O", "H", "L", "C", "Vol"}
    picture = Image.open(tmp_path / "picture.png").convert("RGB")
    box = page.locator("#chart").bounding_box()
    assert box is not None
    assert picture.height - box["height"] == pytest.approx(92, abs=2)
    head = picture.crop((0, 0, picture.width // 2, 92)).getcolors(10_000) or []
    assert len(head) > 2, "nothing is written above the chart"


def test_picture_has_the_figures_of_the_last_candle(charted: Ticker, open_page: OpenPage) -> None:
    page = opened(open_page, script=WRITTEN)
    box = page.locator("#chart").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 60, box["y"] + 60)
    last = of_chart(page, "chart.bars.at(-1).close.toFixed(chart.digits)")
    expect(page.locator("[data-part=close]")).not_to_have_text(last)

    with page.expect_download():
        page.evaluate("document.querySelector('[data-tool=picture]').click()")

    assert f"C {last}" in page.evaluate("window.written")


def test_picture_says_what_it_does_not_show(settings: Any, charted: Ticker, open_page: OpenPage) -> None:
    settings.DEMO = True
    page = opened(open_page, script=WRITTEN)
    tool(page, "log").click()
    # The page writes there each second.
    page.locator("#trading").evaluate("""(words) => {
        Object.defineProperty(words, "textContent", { get: () => "Closed, opens Sun 22:00 UTC", set() {} });
    }""")
    with page.expect_download():
        page.evaluate("document.querySelector('[data-tool=picture]').click()")

    written = set(page.evaluate("window.written"))
    assert {"Demo: a made-up market", "Logarithmic scale"} < written
    assert any(text.startswith("Closed, opens") for text in written)


def test_full_screen_is_filled_by_the_chart_and_left_again(charted: Ticker, open_page: OpenPage) -> None:
    page = opened(open_page)
    before = page.locator("#chart").bounding_box()

    tool(page, "fullscreen").click()
    expect(tool(page, "fullscreen")).to_have_attribute("aria-pressed", "true")
    filled = page.locator("#chart").bounding_box()
    assert before is not None
    assert filled is not None
    assert filled["width"] == page.evaluate("innerWidth")
    assert filled["height"] > before["height"]
    page.keyboard.press("Alt+f")

    expect(tool(page, "fullscreen")).to_have_attribute("aria-pressed", "false")


def test_address_wins_over_what_is_remembered_and_back_works(charted: Ticker, open_page: OpenPage) -> None:
    page = opened(open_page, "/terminal?symbol=BTCUSD&tf=1m")
    page.goto("/terminal?symbol=eur/usd&tf=5M")
    shown(page)
    expect(page.locator("#chart-symbol")).to_have_text("EURUSD")
    expect(page.get_by_role("radio", name="5m", exact=True)).to_be_checked()

    page.keyboard.press("4")
    expect(page).to_have_url(re.compile(r"\?symbol=EURUSD&tf=1h$"))
    page.get_by_role("button", name="BTCUSD").click()
    expect(page).to_have_url(re.compile(r"\?symbol=BTCUSD&tf=1h$"))
    page.go_back()
    expect(page.locator("#chart-symbol")).to_have_text("EURUSD")
    page.go_back()

    expect(page.get_by_role("radio", name="5m", exact=True)).to_be_checked()
    until_chart(page, "chart.shown === '5m' && chart.symbol === 'EURUSD'")


def test_unknown_symbol_in_the_address_shows_another(charted: Ticker, open_page: OpenPage) -> None:
    page = opened(open_page, "/terminal?symbol=NOPE&tf=2h")

    expect(page).to_have_url(re.compile(r"\?symbol=[BE]\w+USD&tf=1m$"))


def test_tools_stand_side_by_side_in_one_row(charted: Ticker, open_page: OpenPage) -> None:
    page = opened(open_page)
    switch_on(page, "SMA", "RSI")
    for _ in widths(page, 360, 768, 1440, 2560):
        assert misplaced(page, ".price", TOOLS) == []
        box = page.locator(".tools").bounding_box()
        assert box is not None
        assert box["height"] < 48


@pytest.mark.parametrize("menu", ["indicators", "zone"])
def test_menu_lies_within_the_window(charted: Ticker, open_page: OpenPage, menu: str) -> None:
    page = opened(open_page)

    tool(page, menu).locator("summary").click()
    for _ in widths(page, 360, 1440, height=800):
        assert misplaced(page, "html", f"[data-tool={menu}] .panel") == []
        parts = f"[data-tool={menu}] .panel label, .panel [type=number]"
        assert misplaced(page, f"[data-tool={menu}] .panel", parts) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_tools_break_no_rule_of_access(charted: Ticker, open_page: OpenPage, scheme: str) -> None:
    page = opened(open_page, color_scheme=scheme, reduced_motion="reduce")
    switch_on(page, "SMA", "EMA", "Bollinger", "VWAP", "RSI", "MACD")
    tool(page, "log").click()
    found = violations(page)

    for menu in ("indicators", "zone"):
        tool(page, menu).locator("summary").click()
        found += violations(page)

    assert found == []
