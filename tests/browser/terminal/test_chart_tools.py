"""The row of tools: indicators, scale, zone, picture, full screen, and the address of what is shown."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage
from tests.browser.looks import broken, misplaced, violations, widths
from tests.contract.streams.ticker import Ticker

from .conftest import box_of, choose, chosen, drag, live, of_chart, opened, shown, until_chart

MEAN = "chart.bars.slice(-20).reduce((sum, { close }) => sum + close, 0) / 20"
# What is drawn on canvases: those of the page, and those of a picture, which are not in it.
WRITTEN = """
window.written = { page: new Set(), picture: new Set() };
const { fillText } = CanvasRenderingContext2D.prototype;
CanvasRenderingContext2D.prototype.fillText = function (text, ...more) {
    window.written[this.canvas.isConnected ? "page" : "picture"].add(text);
    return fillText.call(this, text, ...more);
};
"""
SERIES = "chart.chart.panes().map((pane) => pane.getSeries().length)"
# How many tags stand on the axis of each pane.
TAGGED = """chart.chart.panes().map((pane) => pane.getSeries().flatMap((each) => [
    ...each.priceLines().filter((line) => line.options().axisLabelVisible),
    ...(each.options().lastValueVisible ? [each] : []),
]).length)"""
RSI = "chart.chart.panes()[1].getSeries()[0]"
# The value on the axis of a pane.
TAG = f"{RSI}.priceLines().at(-1).options().price"
TOOLS = ".tools > .choice label, .tools > .menu > summary, .tools > .tool"
PHRASES = ".legend > .phrase"


def tool(page: Page, name: str) -> Any:
    return page.locator(f"[data-tool={name}]")


def open_menu(page: Page, name: str) -> None:
    tool(page, name).locator("summary").click()


def switch_on(page: Page, *names: str) -> None:
    open_menu(page, "indicators")
    for name in names:
        page.get_by_role("checkbox", name=name).check()
    page.keyboard.press("Escape")
    expect(page.get_by_role("checkbox", name=names[0])).to_be_hidden()
    # The mouse would be over the chart now, and the legend about the candle there.
    page.mouse.move(0, 0)


def row(page: Page, name: str) -> Any:
    return page.locator(".study", has_text=name)


def written(page: Page, where: str) -> set[str]:
    return set(page.evaluate(f"[...window.written.{where}]"))


def test_indicators_are_drawn_told_kept_up_to_date_and_remembered(
    charted: Ticker, open_page: OpenPage
) -> None:
    page = opened(open_page, script=WRITTEN)

    switch_on(page, "SMA", "RSI", "MACD")

    assert of_chart(page, SERIES) == [3, 1, 3]
    assert of_chart(page, TAGGED) == [1, 1, 1]
    before = of_chart(page, MEAN)
    expect(row(page, "SMA 20")).to_contain_text(f"{before:.5f}")
    expect(row(page, "RSI 14")).to_contain_text(f"{of_chart(page, TAG):.2f}")
    charted("BTCUSD", 50)
    # In one look: prices arrive between two of them.
    told = "[...document.querySelectorAll('.study')].map(({ textContent }) => textContent.trim())"
    until_chart(page, f"{MEAN} !== {before} && {told}.includes('SMA 20' + ({MEAN}).toFixed(5))")
    assert written(page, "page") & {"100.00", "0.00"}
    assert "120.00" not in written(page, "page"), "an impossible figure stands at the axis"

    box = box_of(page, "#chart")
    page.mouse.move(box["x"] + 100, box["y"] + 200)
    at = of_chart(
        page, "chart.bars.findIndex(({ time }) => time === chart.chart.timeScale().coordinateToTime(100))"
    )
    there = f"chart.bars.slice({at} - 19, {at} + 1).reduce((sum, {{ close }}) => sum + close, 0) / 20"
    expect(row(page, "SMA 20")).to_contain_text(f"{of_chart(page, there):.5f}")
    drag(page, 600)
    assert of_chart(page, "chart.chart.timeScale().getVisibleLogicalRange().to < chart.bars.length - 10")
    until_chart(page, f"{TAG} === {RSI}.data().at(-1).value")

    page.reload()
    shown(page)
    expect(page.locator(".study")).to_have_count(3)
    expect(page.locator(".count")).to_have_text("3")
    open_menu(page, "indicators")
    page.get_by_role("checkbox", name="RSI").uncheck()
    expect(page.locator(".study")).to_have_count(2)
    assert of_chart(page, SERIES) == [3, 3]


def test_logarithmic_scale_is_that_of_the_price_alone_and_remembered(
    charted: Ticker, open_page: OpenPage
) -> None:
    page = opened(open_page)
    modes = "chart.chart.panes().map((pane) => pane.getSeries()[0].priceScale().options().mode)"
    scale = f"{RSI}.priceScale().getVisibleRange()"
    page.keyboard.press("Alt+l")
    expect(tool(page, "log")).to_have_attribute("aria-pressed", "true")
    switch_on(page, "RSI")
    page.reload()

    for is_log in (True, False):
        until_chart(shown(page), f"{scale}.from >= -30 && {scale}.to <= 130")
        assert of_chart(page, modes) == [int(is_log), 0]
        tool(page, "log").click()


def test_length_of_an_indicator_is_chosen_nonsense_refused_and_what_it_needs_loaded(
    charted: Ticker, open_page: OpenPage
) -> None:
    page = opened(open_page)
    switch_on(page, "SMA")
    open_menu(page, "indicators")
    length, allowed = page.get_by_role("spinbutton", name="SMA: length"), page.locator(".allowed:visible")

    def enter(text: str) -> None:
        length.fill(text)
        length.press("Tab")

    enter("5")
    expect(row(page, "SMA 5")).to_be_visible()
    for nonsense in ("-3", "0", "501", "2.5", ""):
        enter(nonsense)
        expect(length).to_have_value("5")
        expect(allowed).to_have_text("Allowed: 1 to 500, whole numbers")
    expect(row(page, "SMA 5")).to_be_visible()
    enter("500")
    expect(row(page, "SMA 500")).to_be_visible()
    expect(allowed).to_have_count(0)
    first = "Math.max(0, Math.ceil(chart.chart.timeScale().getVisibleLogicalRange().from))"
    values = "chart.parts.find(({ shown }) => shown?.get?.('sma')).shown.get('sma').running.values"
    until_chart(page, f"{values}[{first}].average !== undefined")


def test_zone_changes_what_is_written_and_never_the_data(charted: Ticker, open_page: OpenPage) -> None:
    page = opened(open_page, timezone_id="Asia/Kolkata")
    zone = tool(page, "zone").locator("summary")
    last = "chart.bars.at(-2).time"
    marked = f"chart.chart.timeScale().options().tickMarkFormatter({last}, 3)"
    in_utc, before = of_chart(page, f"[{marked}, {last}]")

    open_menu(page, "zone")
    page.get_by_text("Local time").click()
    page.keyboard.press("Escape")
    expect(tool(page, "zone").locator(".panel")).to_be_hidden()
    expect(zone).to_be_focused()

    expect(zone).to_contain_text("UTC+5:30")
    local = of_chart(page, marked)
    minutes = [int(hour) * 60 + int(minute) for hour, minute in (in_utc.split(":"), local.split(":"))]
    assert (minutes[1] - minutes[0]) % 1440 == 330
    assert of_chart(page, f"chart.chart.options().localization.timeFormatter({last})").endswith(local)
    assert of_chart(page, f"chart.bars.some(({{ time }}) => time === {before})")
    page.reload()
    expect(zone).to_contain_text("UTC+5:30")
    open_menu(page, "zone")
    chosen(page).click()
    expect(tool(page, "zone").locator(".panel")).to_be_hidden()


def test_picture_says_what_it_shows(
    settings: Any, charted: Ticker, open_page: OpenPage, tmp_path: Path
) -> None:
    settings.DEMO = False
    page = opened(open_page, script=WRITTEN)
    switch_on(page, "SMA", "MACD")
    box = box_of(page, "#chart")
    page.mouse.move(box["x"] + 60, box["y"] + 60)
    last = of_chart(page, "chart.bars.at(-1).close.toFixed(chart.digits)")
    expect(page.locator("[data-part=close]")).not_to_have_text(last)

    # Not with the mouse, which points at an older candle.
    take = "document.querySelector('[data-tool=picture]').click()"
    with page.expect_download() as download:
        page.evaluate(take)

    assert re.fullmatch(r"BTCUSD-1m-\d{4}-\d\d-\d\dT\d{6}Z\.png", download.value.suggested_filename)
    download.value.save_as(tmp_path / "picture.png")
    texts = written(page, "picture")
    assert {"BTCUSD · 1m", "SMA 20", "MACD 12 26 9", "Tickwire", f"C {last}"} < texts
    assert not {"Demo: a made-up market", "Logarithmic scale"} & texts
    assert {text.split()[0] for text in texts} > {"O", "H", "L", "C", "Vol"}
    picture = Image.open(tmp_path / "picture.png").convert("RGB")
    assert picture.height - box["height"] == pytest.approx(92, abs=2)
    assert len(picture.crop((0, 0, picture.width // 2, 92)).getcolors(10_000) or []) > 2

    settings.DEMO = True
    page.reload()
    shown(page)
    tool(page, "log").click()
    # The page writes there each second.
    page.locator("#trading").evaluate("""(words) => {
        Object.defineProperty(words, "textContent", { get: () => "Closed, opens Sun 22:00 UTC", set() {} });
    }""")
    with page.expect_download():
        page.evaluate(take)
    texts = written(page, "picture")
    assert {"Demo: a made-up market", "Logarithmic scale"} < texts
    assert any(text.startswith("Closed, opens") for text in texts)


def test_full_screen_is_filled_by_the_chart_and_left_again(charted: Ticker, open_page: OpenPage) -> None:
    page = opened(open_page)
    before = box_of(page, "#chart")

    tool(page, "fullscreen").click()
    expect(tool(page, "fullscreen")).to_have_attribute("aria-pressed", "true")
    filled = box_of(page, "#chart")
    assert filled["width"] == page.evaluate("innerWidth")
    assert filled["height"] > before["height"]
    page.keyboard.press("Alt+f")
    expect(tool(page, "fullscreen")).to_have_attribute("aria-pressed", "false")


def test_address_wins_over_what_is_remembered_names_what_is_unknown_and_back_works(
    charted: Ticker, open_page: OpenPage
) -> None:
    page = opened(open_page, "/terminal?symbol=<b>x</b>&tf=2h")
    notices = page.locator("main > .notice")
    expect(notices).to_have_text(
        [
            "There is no instrument <B>X</B> here.",
            "There is no timeframe 2h here. The chart has 1m, 5m, 15m, 1h, 4h, 1d.",
        ]
    )
    expect(page).to_have_url(re.compile(r"\?symbol=BTCUSD&tf=1m$"))
    choose(page, "EURUSD")
    expect(notices).to_have_count(0)

    page.goto("/terminal?symbol=BTCUSD")
    expect(chosen(page)).to_have_text("BTCUSD")
    page.goto("/terminal")
    expect(chosen(page)).to_have_text("EURUSD")
    page.goto("/terminal?symbol=eur/usd&tf=5M")
    shown(page)
    expect(page.get_by_role("radio", name="5m", exact=True)).to_be_checked()

    page.keyboard.press("4")
    expect(page).to_have_url(re.compile(r"\?symbol=EURUSD&tf=1h$"))
    # Arrows leave one step in the history, however many there were.
    for key in ("ArrowUp", "ArrowDown", "ArrowUp"):
        page.keyboard.press(key)
    expect(page).to_have_url(re.compile(r"\?symbol=BTCUSD&tf=1h$"))
    page.go_back()
    expect(chosen(page)).to_have_text("EURUSD")
    page.go_back()
    expect(page.get_by_role("radio", name="5m", exact=True)).to_be_checked()
    until_chart(page, "chart.shown === '5m' && chart.symbol === 'EURUSD'")


def test_tools_menus_and_legend_fit_every_window_and_break_no_rule_of_access(
    charted: Ticker, open_page: OpenPage
) -> None:
    page = opened(open_page, reduced_motion="reduce")
    for _ in widths(page, 360, 768, 1440, 2560):
        assert misplaced(page, ".price", TOOLS) == []
        assert box_of(page, ".tools")["height"] < 48
        assert broken(page, PHRASES) == misplaced(page, ".price .plot", PHRASES) == []
    for menu in ("zone", "indicators"):
        open_menu(page, menu)
        for _ in widths(page, 360, 1440):
            assert misplaced(page, "html", f"[data-tool={menu}] .panel") == []
            panel = f"[data-tool={menu}] .panel"
            assert misplaced(page, panel, f"{panel} label, {panel} [type=number]") == []
    for name in ("SMA", "EMA", "Bollinger", "VWAP", "RSI", "MACD"):
        page.get_by_role("checkbox", name=name).check()
    assert violations(page) == []


def test_what_another_tab_chose_is_kept(charted: Ticker, open_page: OpenPage) -> None:
    page = opened(open_page)
    other = page.context.new_page()
    other.goto("/")
    live(other).get_by_role("checkbox", name="BTCUSD, favourite").check()
    switch_on(other, "SMA")

    page.bring_to_front()
    page.get_by_role("checkbox", name="EURUSD, favourite").check()
    switch_on(page, "RSI")

    expect(page.get_by_role("checkbox", name="BTCUSD, favourite")).to_be_checked()
    other.reload()
    for symbol in ("BTCUSD", "EURUSD"):
        expect(other.get_by_role("checkbox", name=f"{symbol}, favourite")).to_be_checked()
    for name in ("SMA", "RSI"):
        expect(row(other, name)).to_be_visible()
