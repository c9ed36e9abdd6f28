"""What the tests of the chart share: its minutes, and a look at what a canvas does not tell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page

from accounts.models import User
from core import clock
from core.times import MINUTE_MS
from tests.client import Server
from tests.contract.market.stored_minutes import minutes, store
from tests.contract.streams.ticker import Ticker, ticking
from tests.factories import put_candles

from .test_terminal import wait_for_quotes

SYMBOL, OTHER = "BTCUSD", "EURUSD"
REACH = "async () => { window.reached = await (await import('/static/terminal/terminal.js')).complete; }"
IN_MEMORY, STORED = 500, 2_600


@pytest.fixture
def charted(publisher: User, server: Server) -> Iterator[Ticker]:
    """Minutes without a hole up to this one, which two ticks have begun."""
    this_minute = clock.now_ms() // MINUTE_MS * MINUTE_MS
    times = [this_minute - back * MINUTE_MS for back in range(IN_MEMORY, 0, -1)]
    for symbol in (SYMBOL, OTHER):
        put_candles(symbol, "1m", times)
        store(symbol, minutes(STORED, from_ms=this_minute - STORED * MINUTE_MS))
    with ticking(server) as ticker:
        for symbol in (SYMBOL, OTHER):
            ticker(symbol, 2)
        wait_for_quotes(SYMBOL, OTHER)
        yield ticker


def of_chart(page: Page, says: str) -> Any:
    """What an expression about the page's `chart` says."""
    page.evaluate(REACH)
    return page.evaluate(f"() => {{ const {{ chart }} = window.reached; return {says}; }}")


def until_chart(page: Page, says: str) -> None:
    # What is waited for may not be a promise, which would count as true.
    page.evaluate(REACH)
    page.wait_for_function(f"() => {{ const {{ chart }} = window.reached; return {says}; }}")


def shown(page: Page) -> Page:
    until_chart(page, "chart.isShown && chart.bars.length > 0")
    return page


def drag(page: Page, by_px: int) -> None:
    """As a mouse does, to the right for what is older."""
    box = page.locator("#chart").bounding_box()
    assert box is not None
    at = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 3)
    page.mouse.move(*at)
    page.mouse.down()
    page.mouse.move(at[0] + by_px, at[1], steps=8)
    page.mouse.up()
    page.mouse.move(0, 0)
