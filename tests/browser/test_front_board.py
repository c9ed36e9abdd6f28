"""The board of the front page: every row has two lines, also that of a closed market."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import expect

from core import clock
from core.times import moment
from tests.browser.conftest import OpenPage
from tests.client import Server
from tests.factories import make_calendar, make_instrument, put_candles, put_quote

from .looks import resize, widths

HOUR_MS = 3_600_000
DAYS_MS = 40 * HOUR_MS


@pytest.fixture(autouse=True)
def _markets(server: Server, settings: Any) -> None:
    settings.DEMO = settings.PUBLIC_TERMINAL = True
    opens = moment(clock.now_ms()) + timedelta(days=3)
    make_instrument("EURUSD", name="Euro / US Dollar")
    make_instrument(
        "GBPUSD",
        name="British Pound / US Dollar",
        calendar=make_calendar("rare", f"{opens:%a} 10:00-10:01"),
    )
    at_ms = clock.now_ms() - DAYS_MS
    at_ms -= at_ms % HOUR_MS
    for symbol in ("EURUSD", "GBPUSD"):
        put_candles(symbol, "1h", [at_ms + n * HOUR_MS for n in range(7)], 1.2)
    put_quote("EURUSD", 1.0841, 1.0842)
    put_quote("GBPUSD", 1.206, 1.2062, at_ms)


def test_row_of_a_closed_market_is_as_high_as_the_others(open_page: OpenPage) -> None:
    page = open_page("/about")
    expect(page.locator("#board-state")).to_have_text("Live")
    row = page.locator("tr[data-symbol=GBPUSD]")
    expect(row).to_have_class("closed")
    about = row.locator("[data-cell=about]")
    expect(about).to_contain_text("opens")
    for _ in widths(page, 360, 480, 768, 1024, 1440, 2560):
        assert about.evaluate("(each) => each.scrollWidth <= each.clientWidth")
        expect(row.locator("[data-cell=mark]")).to_have_text("closed")
        heights = page.locator("#board tbody tr").evaluate_all(
            "(rows) => rows.map((row) => Math.round(row.getBoundingClientRect().height))"
        )
        assert len(heights) == 2
        assert max(heights) - min(heights) <= 1
        assert max(heights) < 64


def test_line_of_a_closed_market_says_what_it_shows(open_page: OpenPage) -> None:
    page = open_page("/about")
    resize(page, 1440, 900)
    closed, trading = (page.locator(f"tr[data-symbol={symbol}] .hours") for symbol in ("GBPUSD", "EURUSD"))
    expect(closed).to_have_text("7 trading hours")
    expect(closed).to_be_visible()
    expect(trading).to_be_hidden()
