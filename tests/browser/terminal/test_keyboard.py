"""The terminal by keyboard: symbol search, the watchlist, the list of shortcuts."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from accounts.models import User
from tests.browser.audit import violations
from tests.browser.conftest import OpenPage
from tests.contract.streams.ticker import Ticker
from tests.factories import make_instrument, put_quote

from .test_terminal import live, publisher, ticker

__all__ = ("publisher", "ticker")
MOST_TABS = 60
NAMES = {
    "XAUUSD": "Gold / US Dollar",
    "NZDUSD": "New Zealand Dollar / US Dollar",
    "US500": "US 500 Index",
    "UK100": "UK 100 Index",
}


@pytest.fixture
def named(publisher: User) -> None:
    for symbol, name in NAMES.items():
        make_instrument(symbol, name=name)
        put_quote(symbol)


def chart_of(page: Page) -> Any:
    return page.locator("#chart-symbol")


def options(page: Page) -> Any:
    return page.get_by_role("option")


@pytest.mark.parametrize("keys", ["Control+k", "Meta+k"])
def test_search_opens_finds_and_shows(named: None, ticker: Ticker, open_page: OpenPage, keys: str) -> None:
    page = live(open_page("/"))
    find = page.get_by_role("button", name="Search symbols")
    find.focus()
    page.keyboard.press(keys)
    field = page.get_by_role("combobox", name="Symbol or name")
    expect(field).to_be_focused()
    assert violations(page) == []
    page.keyboard.type("gold")
    expect(options(page)).to_have_count(1)
    page.keyboard.press("Enter")

    expect(chart_of(page)).to_have_text("XAUUSD")
    expect(page.locator("#palette")).to_be_hidden()
    expect(find).to_be_focused()


def test_found_instrument_has_one_line_and_is_shown_in_the_list(
    named: None, ticker: Ticker, open_page: OpenPage
) -> None:
    page = live(open_page("/", viewport={"width": 360, "height": 740}))
    listed = page.locator(".watch .scroll")
    listed.evaluate("(list) => { list.style.maxHeight = '8rem'; }")
    page.keyboard.press("Control+k")
    expect(options(page)).to_have_count(len(NAMES) + 2)
    heights = options(page).evaluate_all("(all) => all.map((each) => each.offsetHeight)")
    assert len(set(heights)) == 1
    page.keyboard.type("gold")
    page.keyboard.press("Enter")
    expect(chart_of(page)).to_have_text("XAUUSD")
    seen = """(list) => {
        const [row, frame] = [list.querySelector(".chosen"), list]
            .map((each) => each.getBoundingClientRect());
        return row.top >= frame.top && row.bottom <= frame.bottom;
    }"""
    assert listed.evaluate(seen)


def test_typing_begins_a_search_and_arrows_choose(named: None, ticker: Ticker, open_page: OpenPage) -> None:
    page = live(open_page("/"))
    page.keyboard.type("u")
    expect(page.get_by_role("combobox")).to_have_value("u")
    page.keyboard.type("s")
    expect(options(page).first).to_contain_text("US500")
    first, second = options(page).first, options(page).nth(1)
    expect(first).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowDown")
    expect(second).to_have_attribute("aria-selected", "true")
    symbol = second.get_attribute("data-symbol") or ""
    page.keyboard.press("Enter")
    expect(chart_of(page)).to_have_text(symbol)


def test_escape_leaves_everything_as_it_was(named: None, ticker: Ticker, open_page: OpenPage) -> None:
    page = live(open_page("/"))
    page.keyboard.type("xau")
    expect(options(page)).to_have_count(1)
    page.keyboard.type("q")
    expect(page.locator("#palette [role=status]")).to_have_text("No instrument matches “xauq”.")
    page.keyboard.press("Escape")
    expect(page.locator("#palette")).to_be_hidden()
    expect(chart_of(page)).to_have_text("BTCUSD")


MATCHES = {
    "eur": ["EURUSD"],
    "nzd": ["NZDUSD"],
    "zeal": ["NZDUSD"],
    "nwzl": ["NZDUSD"],
    "u100": ["UK100"],
    "100": ["UK100"],
    "us5": ["US500"],
    "(": [],
}


def test_letters_may_be_left_out(open_page: OpenPage) -> None:
    instruments = [{"symbol": symbol, "name": name} for symbol, name in NAMES.items()]
    instruments.append({"symbol": "EURUSD", "name": "Euro / US Dollar"})
    found = open_page("/docs").evaluate(
        """async ([queries, instruments]) => {
            const { matches } = await import("/static/terminal/keyboard/palette.js");
            const symbols = (query) => matches(query, instruments).map(({ instrument }) => instrument.symbol);
            return Object.fromEntries(queries.map((query) => [query, symbols(query).slice(0, 1)]));
        }""",
        [list(MATCHES), instruments],
    )
    assert found == MATCHES


def test_arrows_go_through_the_watchlist_from_anywhere(ticker: Ticker, open_page: OpenPage) -> None:
    page = live(open_page("/"))
    expect(chart_of(page)).to_have_text("BTCUSD")
    page.keyboard.press("ArrowDown")
    expect(chart_of(page)).to_have_text("EURUSD")
    page.keyboard.press("ArrowUp")
    expect(chart_of(page)).to_have_text("BTCUSD")


def test_arrows_in_the_filter_go_through_what_it_leaves(ticker: Ticker, open_page: OpenPage) -> None:
    page = live(open_page("/"))
    field = page.get_by_role("searchbox", name="Filter the watchlist")
    field.fill("usd")
    page.keyboard.press("ArrowDown")
    expect(chart_of(page)).to_have_text("EURUSD")
    expect(field).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(chart_of(page)).to_have_text("BTCUSD")


def test_arrows_are_the_watchlists_again_after_a_click_on_a_timeframe(
    ticker: Ticker, open_page: OpenPage
) -> None:
    page = live(open_page("/"))
    page.get_by_text("5m", exact=True).click()
    page.keyboard.press("ArrowDown")
    expect(chart_of(page)).to_have_text("EURUSD")
    expect(page.get_by_role("radio", name="5m", exact=True)).to_be_checked()

    page.get_by_text("Hourly").click()
    for _ in range(MOST_TABS):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.name") == "timeframe":
            break
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("radio", name="15m")).to_be_checked()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("radio", name="1h")).to_be_checked()


def test_question_mark_lists_all_shortcuts(ticker: Ticker, open_page: OpenPage) -> None:
    page = live(open_page("/"))
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(dialog).to_be_visible()
    expect(dialog.get_by_text("Search for a symbol", exact=True)).to_be_visible()
    assert violations(page) == []
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()


def test_no_key_fires_in_a_field_with_a_modifier_or_once_switched_off(
    ticker: Ticker, open_page: OpenPage
) -> None:
    page = live(open_page("/"))
    palette, field = page.locator("#palette"), page.get_by_role("searchbox")
    field.focus()
    page.keyboard.type("eur?")
    expect(field).to_have_value("eur?")
    page.keyboard.press("ArrowDown")
    field.fill("")
    field.blur()
    for keys in ("Control+b", "Alt+x", "Control+ArrowDown"):
        page.keyboard.press(keys)
    expect(palette).to_be_hidden()
    expect(page.locator("#shortcuts")).to_be_hidden()
    expect(chart_of(page)).to_have_text("BTCUSD")

    page.keyboard.press("?")
    page.get_by_role("checkbox", name="Use single-key shortcuts").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("e")
    page.keyboard.press("?")
    expect(palette).to_be_hidden()
    expect(page.locator("#shortcuts")).to_be_hidden()
    page.keyboard.press("Control+k")
    expect(palette).to_be_visible()


def test_arrows_are_the_watchlists_again_once_a_menu_is_closed(ticker: Ticker, open_page: OpenPage) -> None:
    page = live(open_page("/"))
    for menu, choice in (("zone", "Local time"), ("indicators", "RSI")):
        page.locator(f"[data-tool={menu}] summary").click()
        page.get_by_text(choice).click()
        page.keyboard.press("Escape")
        expect(page.get_by_text(choice).locator("visible=true")).to_have_count(0 if menu == "zone" else 1)
        before = chart_of(page).text_content()
        page.keyboard.press("ArrowDown" if before == "BTCUSD" else "ArrowUp")
        expect(chart_of(page)).not_to_have_text(before or "")
