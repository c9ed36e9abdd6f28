"""The watchlist: what each row says, open or closed, and how it is sorted, filtered and marked."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from accounts.models import User
from core import clock
from core.times import MINUTE_MS, moment
from instruments.catalogue import catalogue
from market import runtime as market
from market.prices import PriceBar
from pages.watchlist import HOUR_MS, opening
from tests.browser.conftest import SYMBOLS, OpenPage, beside
from tests.browser.looks import misplaced, widths
from tests.contract.streams.ticker import Ticker
from tests.factories import make_calendar, make_instrument, put_candles, put_quote

from .conftest import PHONE, TOUCHED, bid, box_of, choose, chosen, live

DAY_MS = 24 * HOUR_MS
LONG = "New Zealand Dollar / United States Dollar"
# Into a row that no price comes for.
WRITE = "text => { document.querySelector('tr[data-symbol=GBPUSD] [data-cell=bid]').textContent = text; }"
# Both are of the last price, and the legend is drawn with the next frame.
AGREE = """() => {
    const change = document.querySelector("tr[data-symbol=BTCUSD] [data-cell=change]").textContent;
    return change.includes("%")
        && document.querySelector(".legend [data-part=change]").textContent.includes(`(${change})`);
}"""
# A price before and two after midnight: nothing is known of the day before the first.
MIDNIGHT = """async (basis) => {
    const { Row } = await import("/static/terminal/watchlist/row.js");
    const element = document.querySelector("tr[data-symbol=EURUSD]").cloneNode(true);
    const known = { name: "", digits: 5, staleAfterS: 60, group: "Forex", state: "open", opensMs: null,
        bid: null, last: null, quotedMs: null, dayMs: null, previousClose: null, low: null, high: null,
        hourMs: null, closes: [] };
    const row = new Row(element, known, () => ({}), basis);
    const midnight = Date.UTC(2026, 0, 2);
    return [[-1, 1], [0, 1.1], [1000, 0.9]].map(([ms, bid]) => {
        row.hear({ bid, ask: bid + 0.2, time: midnight + ms }, 0);
        return row.cells.change.textContent;
    });
}"""
ORDER = (
    "[...document.querySelectorAll('#watchlist tbody tr')].map((row) => row.dataset.symbol ?? row.innerText)"
)


@pytest.fixture
def closed(publisher: User) -> str:
    """GBPUSD, whose market opens for a minute in about three days; it went up by half a percent."""
    opens = moment(clock.now_ms()) + timedelta(days=3)
    calendar = make_calendar("rare", f"{opens:%a} 10:00-10:01")
    make_instrument("GBPUSD", name="British Pound / US Dollar", calendar=calendar)
    at_ms = clock.now_ms() - clock.now_ms() % DAY_MS - 4 * DAY_MS
    bars = [
        PriceBar(at_ms + n * MINUTE_MS, 1.202, 1.22, 1.19, 1.206, 5, 1.22, 1.19) for n in range(0, 200, 20)
    ]
    history = market.prices.history(catalogue.get("GBPUSD"))
    history.restore("1d", PriceBar(at_ms - DAY_MS, 1.19, 1.21, 1.18, 1.2, 5, 1.21, 1.18))
    history.resume(bars)
    put_candles("GBPUSD", "1h", [at_ms + n * HOUR_MS for n in range(24)], 1.2)
    put_quote("GBPUSD", 1.206, 1.2062, at_ms)
    return f"{moment(at_ms):%a}"


def yesterday(price: float) -> None:
    """What trades has had a day before this one."""
    day_ms = clock.now_ms() - clock.now_ms() % DAY_MS - DAY_MS
    for symbol in SYMBOLS:
        put_candles(symbol, "1d", [day_ms], price)


def row_of(page: Page, symbol: str) -> Any:
    return page.locator(f"tr[data-symbol={symbol}]")


def favourite(page: Page, symbol: str) -> Any:
    return page.get_by_role("checkbox", name=f"{symbol}, favourite")


def order(page: Page) -> list[str]:
    """Headings and symbols, from the top to the bottom."""
    texts: list[str] = page.evaluate(ORDER)
    return texts


def test_closed_row_says_when_it_opens_and_how_its_last_session_went(
    closed: str, ticker: Ticker, open_page: OpenPage
) -> None:
    beside(lambda: make_instrument("LONGUSD", name=LONG))
    put_quote("LONGUSD")
    page = live(open_page("/terminal?symbol=LONGUSD"))
    row = row_of(page, "GBPUSD")
    expect(row).to_contain_text("closed")
    opens_ms = catalogue.get("GBPUSD").hours.next_open(clock.now_ms())
    assert row.locator("[data-cell=about]").inner_text() == opening(opens_ms, clock.now_ms())
    # 1.206 after 1.2 of the day before, although this day opened at 1.202.
    expect(row.locator("[data-cell=change]")).to_have_text("+0.50%")
    expect(row.locator("[data-cell=day]")).to_have_text(closed)
    expect(row.locator("[data-cell=range]")).to_have_text("Day’s range 1.19000 to 1.22000")
    assert row.locator(".spark path").get_attribute("d").count("L") == 23

    # Where the list stands beside the chart, a name may end in an ellipsis, and has a title.
    expect(row_of(page, "LONGUSD").locator("[data-cell=about]")).to_have_attribute("title", LONG)
    parts = "td small, .name button, td [data-cell]:not(.unseen), svg"
    for width in widths(page, 360, 768, 1280, 1440, 2560):
        page.evaluate(WRITE, "123,456.78")
        assert misplaced(page, "tr[data-symbol]", parts) == []
        if width == PHONE["width"]:
            assert misplaced(page, "#price > header", "small, #chart-symbol, .tool") == []


def test_closed_market_says_so_above_its_chart_in_the_zone_of_the_chart(
    closed: str, ticker: Ticker, open_page: OpenPage
) -> None:
    page = live(open_page("/terminal?symbol=GBPUSD", viewport=PHONE, timezone_id="Asia/Tokyo"))
    words, begin, end = page.locator("#trading"), r"^Closed, opens\s\w+", r"in\s[23]\sd(\s\d+\sh)?"
    expect(words).to_have_text(re.compile(rf"{begin}\s10:00\sUTC, {end}$"))
    box, pane = box_of(page, "#trading"), box_of(page, "#price")
    assert pane["x"] <= box["x"]
    assert box["x"] + box["width"] <= pane["x"] + pane["width"]

    page.locator("[data-tool=zone] summary").click()
    page.get_by_text("Local time").click()
    expect(words).to_have_text(re.compile(rf"{begin}\s19:00\sUTC\+9, {end}$"))
    flow = page.locator("#flow-pane [data-part=trading]")
    expect(flow).to_have_text(re.compile(rf"{begin}\s19:00\sUTC\+9, {end}\.$"))

    choose(page, "BTCUSD")
    expect(words).to_have_text("")


def test_rows_without_a_price_are_skeletons_until_one_may_have_come(
    ticker: Ticker, open_page: OpenPage
) -> None:
    beside(lambda: make_instrument("NEWUSD"))
    page = open_page("/docs")
    page.clock.install()
    page.route("**/static/terminal/streams/worker.js", lambda route: None)
    page.goto("/")
    skeleton = "(bid) => getComputedStyle(bid, '::before').content"
    assert [bid(page, each).evaluate(skeleton) for each in ("NEWUSD", "BTCUSD")] == ['""', "none"]
    page.clock.run_for(7_000)
    expect(page.locator("#watchlist")).not_to_have_attribute("aria-busy", "true")
    assert bid(page, "NEWUSD").evaluate(skeleton) == "none"


def test_rows_are_filtered_and_favourites_come_first_and_are_remembered(
    closed: str, ticker: Ticker, open_page: OpenPage
) -> None:
    page = live(open_page("/"))
    field = page.get_by_role("searchbox", name="Filter the watchlist")
    field.fill("pound")
    assert order(page) == ["Forex", "GBPUSD"]
    field.fill("nothing of that name")
    expect(page.locator("#watch-none")).to_have_text("No instrument matches “nothing of that name”.")
    field.fill("")
    assert order(page) == ["Forex", "BTCUSD", "EURUSD", "GBPUSD"]

    favourite(page, "EURUSD").check()
    assert order(page) == ["Favourites", "EURUSD", "Forex", "BTCUSD", "GBPUSD"]
    expect(chosen(page)).to_have_text("BTCUSD")
    page.reload()
    live(page)
    assert order(page) == ["Favourites", "EURUSD", "Forex", "BTCUSD", "GBPUSD"]
    favourite(page, "EURUSD").uncheck()
    assert order(page) == ["Forex", "BTCUSD", "EURUSD", "GBPUSD"]


def test_rows_are_sorted_by_name_and_by_change(closed: str, ticker: Ticker, open_page: OpenPage) -> None:
    yesterday(1.0)
    page = live(open_page("/"))
    change, symbol = (page.get_by_role("columnheader", name=name) for name in ("Change", "Symbol"))
    *_, last = ticker("BTCUSD", 40)
    expect(bid(page)).to_have_text(f"{last.bid:.5f}")
    up, down = ["BTCUSD", "EURUSD"], ["EURUSD", "BTCUSD"]
    for heading, way, trading in (
        (change, "descending", up),
        (change, "ascending", down),
        (change, "none", None),
        (symbol, "ascending", up),
        (symbol, "descending", down),
    ):
        heading.get_by_role("button").click()
        expect(heading).to_have_attribute("aria-sort", way)
        by_group = ["Forex", *up, "GBPUSD"]
        assert order(page) == (["Trading", *trading, "Closed", "GBPUSD"] if trading else by_group)


def test_change_line_and_range_follow_the_price(ticker: Ticker, open_page: OpenPage) -> None:
    yesterday(0.5)
    now_ms = clock.now_ms()
    put_candles("BTCUSD", "1h", [now_ms - now_ms % HOUR_MS - n * HOUR_MS for n in range(12, 0, -1)], 1.0)
    page = live(open_page("/terminal?symbol=BTCUSD&tf=1d"))
    row = row_of(page, "BTCUSD")
    before = row.locator(".spark path").get_attribute("d")
    assert before is not None

    (*_, tick) = ticker("BTCUSD", 40)

    page.wait_for_function(AGREE)
    expect(row.locator(".spark path")).not_to_have_attribute("d", before)
    expect(row.locator("[data-cell=range]")).to_contain_text(f"to {tick.bid:.5f}")
    assert float(row.locator(".at").get_attribute("x") or 0) > 90


def test_new_day_counts_from_the_last_price_of_the_day_before(ticker: Ticker, open_page: OpenPage) -> None:
    page = open_page("/")
    assert page.evaluate(MIDNIGHT, "bid") == ["", "+10.00%", "−10.00%"]
    assert page.evaluate(MIDNIGHT, "mid") == ["", "+9.09%", "−9.09%"]


SPANS = [1, 59, 60, 61, 600, 1439, 1440, 1441, 1500, 4321, 10_079, 10_080, 20_000]


def test_page_and_service_word_openings_alike(open_page: OpenPage) -> None:
    now_ms = 1_795_287_600_000
    asked = [now_ms + minutes * MINUTE_MS for minutes in SPANS]
    said = open_page("/docs").evaluate(
        f"""async () => {{
            const {{ opening }} = await import("/static/terminal/page/hours.js");
            return {json.dumps(asked)}.map((ms) => opening(ms, {now_ms}));
        }}"""
    )
    assert said == [opening(ms, now_ms) for ms in asked]


def test_tap_beside_the_menu_closes_it_alone_and_one_on_a_symbol_brings_its_chart(
    ticker: Ticker, open_page: OpenPage
) -> None:
    page = live(open_page("/", **TOUCHED))
    box, menu = box_of(page, "tr[data-symbol=EURUSD]"), page.locator("#site-nav")
    page.get_by_role("button", name="Menu", exact=True).tap()
    expect(menu).to_be_visible()
    edge = box_of(page, "#site-nav")
    assert edge["y"] + edge["height"] < box["y"], "the row is not beside the menu"

    page.touchscreen.tap(box["x"] + 20, box["y"] + 20)
    expect(menu).to_be_hidden()
    expect(chosen(page)).to_have_text("BTCUSD")
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    row_of(page, "EURUSD").locator("button").tap()
    expect(chosen(page)).to_have_text("EURUSD")
    expect(page.locator("#chart")).to_be_in_viewport(ratio=0.9)
