"""The terminal by keyboard: symbol search, the watchlist, the list of shortcuts."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from accounts.models import User
from tests.browser.conftest import OpenPage
from tests.browser.looks import violations
from tests.contract.streams.ticker import Ticker
from tests.factories import make_instrument, put_quote

from .conftest import PHONE, chosen, live

MOST_TABS = 60
NAMES = {
    "XAUUSD": "Gold / US Dollar",
    "NZDUSD": "New Zealand Dollar / US Dollar",
    "US500": "US 500 Index",
    "UK100": "UK 100 Index",
}
IS_SEEN = """(list) => {
    const [row, frame] = [list.querySelector(".chosen"), list].map((each) => each.getBoundingClientRect());
    return row.top >= frame.top && row.bottom <= frame.bottom;
}"""


@pytest.fixture
def named(publisher: User) -> None:
    for symbol, name in NAMES.items():
        make_instrument(symbol, name=name)
        put_quote(symbol)


def options(page: Page) -> Any:
    return page.get_by_role("option")


def test_search_is_opened_walked_and_left_by_keyboard(
    named: None, ticker: Ticker, open_page: OpenPage
) -> None:
    page = live(open_page("/", viewport=PHONE))
    listed, palette = page.locator(".watch .scroll"), page.locator("#palette")
    listed.evaluate("(list) => { list.style.maxHeight = '8rem'; }")
    find = page.get_by_role("button", name="Search symbols")
    find.focus()
    page.keyboard.press("Meta+k")
    expect(page.get_by_role("combobox", name="Symbol or name")).to_be_focused()
    expect(options(page)).to_have_count(len(NAMES) + 2)
    assert violations(page) == []
    page.keyboard.type("gold")
    expect(options(page)).to_have_count(1)
    page.keyboard.press("Enter")
    expect(chosen(page)).to_have_text("XAUUSD")
    expect(palette).to_be_hidden()
    expect(find).to_be_focused()
    assert listed.evaluate(IS_SEEN)

    page.keyboard.press("Control+k")
    page.keyboard.type("xauq")
    expect(page.locator("#palette [role=status]")).to_have_text("No instrument matches “xauq”.")
    page.keyboard.press("Escape")
    expect(palette).to_be_hidden()
    expect(chosen(page)).to_have_text("XAUUSD")

    page.keyboard.type("us")
    expect(page.get_by_role("combobox")).to_have_value("us")
    first, second = options(page).first, options(page).nth(1)
    expect(first).to_contain_text("US500")
    expect(first).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowDown")
    expect(second).to_have_attribute("aria-selected", "true")
    symbol = second.get_attribute("data-symbol") or ""
    page.keyboard.press("Enter")
    expect(chosen(page)).to_have_text(symbol)


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
    names = NAMES | {"EURUSD": "Euro / US Dollar"}
    found = open_page("/docs").evaluate(
        """async ([queries, instruments]) => {
            const { matches } = await import("/static/terminal/keyboard/palette.js");
            const symbols = (query) => matches(query, instruments).map(({ instrument }) => instrument.symbol);
            return Object.fromEntries(queries.map((query) => [query, symbols(query).slice(0, 1)]));
        }""",
        [list(MATCHES), [{"symbol": symbol, "name": name} for symbol, name in names.items()]],
    )
    assert found == MATCHES


def test_arrows_go_through_the_watchlist_wherever_nothing_else_needs_them(
    ticker: Ticker, open_page: OpenPage
) -> None:
    page = live(open_page("/"))

    def walk() -> None:
        for key, symbol in (("ArrowDown", "EURUSD"), ("ArrowUp", "BTCUSD")):
            page.keyboard.press(key)
            expect(chosen(page)).to_have_text(symbol)

    walk()
    field = page.get_by_role("searchbox", name="Filter the watchlist")
    field.fill("usd")
    walk()
    expect(field).to_be_focused()
    page.get_by_text("5m", exact=True).click()
    walk()
    expect(page.get_by_role("radio", name="5m", exact=True)).to_be_checked()
    for menu, choice in (("zone", "Local time"), ("indicators", "RSI")):
        page.locator(f"[data-tool={menu}] summary").click()
        page.get_by_text(choice).click()
        page.keyboard.press("Escape")
        expect(page.get_by_text(choice).locator("visible=true")).to_have_count(0 if menu == "zone" else 1)
        walk()

    page.get_by_text("Hourly").click()
    for _ in range(MOST_TABS):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.name") == "timeframe":
            break
    for timeframe in ("15m", "1h"):
        page.keyboard.press("ArrowRight")
        expect(page.get_by_role("radio", name=timeframe)).to_be_checked()


def test_question_mark_lists_the_shortcuts_and_none_fires_in_a_field_or_switched_off(
    ticker: Ticker, open_page: OpenPage
) -> None:
    page = live(open_page("/"))
    palette, field = page.locator("#palette"), page.get_by_role("searchbox")
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    field.focus()
    page.keyboard.type("eur?")
    expect(field).to_have_value("eur?")
    page.keyboard.press("ArrowDown")
    field.fill("")
    field.blur()
    for keys in ("Control+b", "Alt+x", "Control+ArrowDown"):
        page.keyboard.press(keys)
    expect(palette).to_be_hidden()
    expect(dialog).to_be_hidden()
    expect(chosen(page)).to_have_text("BTCUSD")

    page.keyboard.press("?")
    expect(dialog.get_by_text("Search for a symbol", exact=True)).to_be_visible()
    page.get_by_role("checkbox", name="Use single-key shortcuts").uncheck()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    page.keyboard.press("e")
    page.keyboard.press("?")
    expect(palette).to_be_hidden()
    expect(dialog).to_be_hidden()
    page.keyboard.press("Control+k")
    expect(palette).to_be_visible()
