"""The watchlist: what each row says, open or closed, and how it is sorted, filtered and marked."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from accounts.models import User
from core import clock
from core.times import MINUTE_MS, moment
from instruments.catalogue import catalogue
from instruments.models import Instrument
from market import runtime as market
from market.prices import PriceBar
from pages.watchlist import HOUR_MS, opening
from tests.browser.conftest import OpenPage
from tests.browser.geometry import misplaced, widths
from tests.contract.streams.ticker import Ticker
from tests.factories import make_calendar, make_instrument, put_candles, put_quote

from .test_terminal import beside, bid, live, publisher, ticker

__all__ = ("publisher", "ticker")
DAY_MS = 24 * HOUR_MS
# Names may end in an ellipsis where the list stands beside the chart.
ROWS, PARTS = "tr[data-symbol]", "td small, .name button, td [data-cell]:not(.unseen), svg"

# Into a row that no price comes for.
WRITE = "text => { document.querySelector('tr[data-symbol=GBPUSD] [data-cell=bid]').textContent = text; }"
# Both are of the last price, and the legend is drawn with the next frame.
AGREE = """() => {
    const change = document.querySelector("tr[data-symbol=BTCUSD] [data-cell=change]").textContent;
    return change && document.querySelector(".legend [data-part=change]").textContent.includes(`(${change})`);
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
    for symbol in ("BTCUSD", "EURUSD"):
        put_candles(symbol, "1d", [day_ms], price)


def row_of(page: Page, symbol: str) -> Any:
    return page.locator(f"tr[data-symbol={symbol}]")


def order(page: Page) -> list[str]:
    """Headings and symbols, from the top to the bottom."""
    texts: list[str] = page.evaluate(ORDER)
    return texts


def test_closed_row_says_when_it_opens_and_how_its_last_session_went(
    closed: str, ticker: Ticker, open_page: OpenPage
) -> None:
    page = live(open_page("/"))
    row = row_of(page, "GBPUSD")
    expect(row).to_contain_text("closed")
    opens_ms = catalogue.get("GBPUSD").hours.next_open(clock.now_ms())
    assert row.locator("[data-cell=about]").inner_text() == opening(opens_ms, clock.now_ms())
    # 1.206 after 1.2 of the day before, although this day opened at 1.202.
    expect(row.locator("[data-cell=change]")).to_have_text("+0.50%")
    expect(row.locator("[data-cell=session]")).to_have_text(closed)
    expect(row.locator("[data-cell=range]")).to_have_text("Day’s range 1.19000 to 1.22000")
    assert row.locator(".spark path").get_attribute("d").count("L") == 23
    assert order(page) == ["Forex", "BTCUSD", "EURUSD", "GBPUSD"]


def test_nothing_in_a_row_is_cut_or_covered(closed: str, ticker: Ticker, open_page: OpenPage) -> None:
    page = live(open_page("/"))
    for _ in widths(page, 360, 768, 1280, 1440, 2560):
        page.evaluate(WRITE, "123,456.78")
        assert misplaced(page, ROWS, PARTS) == []
        page.evaluate(WRITE, "1,234,567,890.12345")
        assert misplaced(page, ROWS, PARTS) != []


LONG_NAME = """() => {
    for (const name of document.querySelectorAll("#chart-name, tr[data-symbol=BTCUSD] [data-cell=about]")) {
        name.textContent = "New Zealand Dollar / United States Dollar";
    }
}"""


def test_long_names_are_whole_on_a_phone(ticker: Ticker, open_page: OpenPage) -> None:
    page = live(open_page("/", viewport={"width": 360, "height": 740}))

    page.evaluate(LONG_NAME)

    assert misplaced(page, f"{ROWS}, #price > header", f"{PARTS}, small, #chart-symbol, .tool") == []


# Each phrase that takes more than one line: what a line may end after is a comma, or the stroke of a pair.
BROKEN = """() => [...document.querySelectorAll("#watchlist [data-cell=about]")].flatMap((about) => {
    const text = about.firstChild;
    let at = 0;
    return text.data.split(/, |\\/ /).filter((phrase) => {
        const range = document.createRange();
        range.setStart(text, at);
        range.setEnd(text, (at += phrase.length));
        at += 2;
        return new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size > 1;
    });
})"""
LONG = "Test instrument, for clients: always open"


def test_names_and_openings_are_not_broken_within_a_phrase(
    closed: str, ticker: Ticker, open_page: OpenPage
) -> None:
    beside(lambda: Instrument.objects.filter(symbol="EURUSD").update(name="British Pound / US Dollar"))
    beside(lambda: make_instrument("LONGUSD", name=LONG))
    page = live(open_page("/"))
    for width in widths(page, 360, 768, 1440, 2560):
        # A phone has no pointer to rest on what is cut.
        is_phone = width == 360
        assert page.evaluate(BROKEN) == (["for clients: always open"] if is_phone else [])
        long = row_of(page, "LONGUSD").locator("[data-cell=about]")
        expect(long).to_have_attribute("title", LONG)
        lines = "(part) => Math.round(part.offsetHeight / parseFloat(getComputedStyle(part).lineHeight))"
        assert (long.evaluate(lines) > 1) == is_phone


def test_header_shows_that_and_how_it_sorts(ticker: Ticker, open_page: OpenPage) -> None:
    page = live(open_page("/"))
    shown = """(cell) => {
        const { content, width } = getComputedStyle(cell.querySelector("button"), "::after");
        return [content.split('"')[1], parseFloat(width) > parseFloat(getComputedStyle(cell).fontSize)];
    }"""
    change = page.get_by_role("columnheader", name="Change")
    arrows = []
    for _ in range(3):
        arrows.append(change.evaluate(shown))
        change.get_by_role("button").click()
    assert arrows == [["↕", True], ["↓", True], ["↑", True]]


def test_rows_without_a_price_are_skeletons_until_one_may_have_come(
    ticker: Ticker, open_page: OpenPage
) -> None:
    beside(lambda: make_instrument("NEWUSD"))
    page = open_page("/docs")
    page.clock.install()
    page.route("**/static/terminal/streams/worker.js", lambda route: None)
    page.goto("/")
    shown = "(bid) => getComputedStyle(bid, '::before').content"
    new, known = (bid(page, symbol) for symbol in ("NEWUSD", "BTCUSD"))
    height = row_of(page, "NEWUSD").evaluate("(row) => row.offsetHeight")
    assert (new.evaluate(shown), known.evaluate(shown)) == ('""', "none")
    page.clock.run_for(7_000)
    expect(page.locator("#watchlist")).not_to_have_attribute("aria-busy", "true")
    assert new.evaluate(shown) == "none"
    assert row_of(page, "NEWUSD").evaluate("(row) => row.offsetHeight") == height


def test_favourites_of_another_tab_are_kept(ticker: Ticker, open_page: OpenPage) -> None:
    page = live(open_page("/"))
    other = page.context.new_page()
    other.goto("/")
    live(other).get_by_role("checkbox", name="BTCUSD, favourite").check()

    page.bring_to_front()
    page.get_by_role("checkbox", name="EURUSD, favourite").check()

    expect(page.get_by_role("checkbox", name="BTCUSD, favourite")).to_be_checked()
    other.reload()
    for symbol in ("BTCUSD", "EURUSD"):
        expect(other.get_by_role("checkbox", name=f"{symbol}, favourite")).to_be_checked()


def test_favourites_come_first_and_are_remembered(ticker: Ticker, open_page: OpenPage) -> None:
    page = live(open_page("/"))
    page.get_by_role("checkbox", name="EURUSD, favourite").check()
    assert order(page) == ["Favourites", "EURUSD", "Forex", "BTCUSD"]
    expect(page.locator("#chart-symbol")).to_have_text("BTCUSD")

    page.reload()

    live(page)
    assert order(page) == ["Favourites", "EURUSD", "Forex", "BTCUSD"]
    page.get_by_role("checkbox", name="EURUSD, favourite").uncheck()
    assert order(page) == ["Forex", "BTCUSD", "EURUSD"]


def test_rows_are_filtered_by_symbol_and_name(closed: str, ticker: Ticker, open_page: OpenPage) -> None:
    page = live(open_page("/"))
    field = page.get_by_role("searchbox", name="Filter the watchlist")
    field.fill("pound")
    assert order(page) == ["Forex", "GBPUSD"]
    field.fill("nothing of that name")
    expect(page.locator("#watch-none")).to_have_text("No instrument matches “nothing of that name”.")
    field.fill("")
    assert len(order(page)) == 4


def test_rows_are_sorted_by_name_and_by_change(closed: str, ticker: Ticker, open_page: OpenPage) -> None:
    yesterday(1.0)
    page = live(open_page("/"))
    change = page.get_by_role("columnheader", name="Change")
    *_, last = ticker("BTCUSD", 40)
    expect(bid(page)).to_have_text(f"{last.bid:.5f}")
    change.get_by_role("button").click()
    expect(change).to_have_attribute("aria-sort", "descending")
    assert order(page) == ["Trading", "BTCUSD", "EURUSD", "Closed", "GBPUSD"]
    change.get_by_role("button").click()
    expect(change).to_have_attribute("aria-sort", "ascending")
    assert order(page) == ["Trading", "EURUSD", "BTCUSD", "Closed", "GBPUSD"]
    change.get_by_role("button").click()
    expect(change).to_have_attribute("aria-sort", "none")
    assert order(page) == ["Forex", "BTCUSD", "EURUSD", "GBPUSD"]
    symbol = page.get_by_role("columnheader", name="Symbol")
    expect(symbol).to_have_attribute("aria-sort", "none")
    for way, trading in (("ascending", ["BTCUSD", "EURUSD"]), ("descending", ["EURUSD", "BTCUSD"])):
        symbol.get_by_role("button").click()
        expect(symbol).to_have_attribute("aria-sort", way)
        assert order(page) == ["Trading", *trading, "Closed", "GBPUSD"]


def test_change_is_that_of_the_daily_chart(ticker: Ticker, open_page: OpenPage) -> None:
    yesterday(0.5)
    page = live(open_page("/terminal?symbol=BTCUSD&tf=1d"))
    ticker("BTCUSD", 40)
    page.wait_for_function(AGREE)
    assert "%" in row_of(page, "BTCUSD").locator("[data-cell=change]").inner_text()


@pytest.mark.parametrize(
    ("basis", "changes"), [("bid", ("+10.00%", "−10.00%")), ("mid", ("+9.09%", "−9.09%"))]
)
def test_new_day_counts_from_the_last_price_of_the_day_before(
    ticker: Ticker, open_page: OpenPage, basis: str, changes: tuple[str, str]
) -> None:
    page = live(open_page("/"))
    assert page.evaluate(MIDNIGHT, basis) == ["", *changes]


def test_line_and_range_follow_the_price(ticker: Ticker, open_page: OpenPage) -> None:
    now_ms = clock.now_ms()
    hours = [now_ms - now_ms % HOUR_MS - n * HOUR_MS for n in range(12, 0, -1)]
    put_candles("BTCUSD", "1h", hours, 1.0)
    page = live(open_page("/"))
    line = row_of(page, "BTCUSD").locator(".spark path")
    before = line.get_attribute("d")
    assert before is not None

    (*_, tick) = ticker("BTCUSD", 30)

    expect(line).not_to_have_attribute("d", before)
    expect(row_of(page, "BTCUSD").locator("[data-cell=range]")).to_contain_text(f"to {tick.bid:.5f}")
    assert float(row_of(page, "BTCUSD").locator(".at").get_attribute("x") or 0) > 90


def test_tapped_symbol_brings_the_chart_into_view(ticker: Ticker, open_page: OpenPage) -> None:
    page = live(open_page("/", viewport={"width": 360, "height": 640}, has_touch=True, is_mobile=True))
    row = row_of(page, "EURUSD")
    row.scroll_into_view_if_needed()
    page.evaluate("scrollTo(0, document.body.scrollHeight)")

    row.locator("button").tap()

    expect(page.locator("#chart-symbol")).to_have_text("EURUSD")
    expect(page.locator("#chart")).to_be_in_viewport(ratio=0.9)


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


def test_tap_beside_the_menu_closes_it_and_nothing_else(ticker: Ticker, open_page: OpenPage) -> None:
    page = live(open_page("/", viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True))
    box = row_of(page, "EURUSD").bounding_box()
    assert box is not None
    page.get_by_role("button", name="Menu", exact=True).tap()
    menu = page.locator("#site-nav")
    expect(menu).to_be_visible()
    edge = menu.bounding_box()
    assert edge is not None
    assert edge["y"] + edge["height"] < box["y"], "the row is not beside the menu"

    for shown in ("BTCUSD", "EURUSD"):
        page.touchscreen.tap(box["x"] + 20, box["y"] + 20)
        expect(page.locator("#chart-symbol")).to_have_text(shown)
        expect(menu).to_be_hidden()
