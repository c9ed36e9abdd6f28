"""The worlds of the terminal, its parts, and a look at what a canvas does not tell."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from accounts.models import User
from core import clock
from core.times import MINUTE_MS
from market.streams import market_streams as streams
from signals_feed.closing import Closing, close_signal
from signals_feed.models import Signal
from signals_feed.rules import Quoted
from tests.browser.conftest import SYMBOLS, OpenPage, beside, wait_for_quotes
from tests.client import Server
from tests.contract.market.stored_minutes import minutes, store
from tests.contract.streams.ticker import Ticker, ticking
from tests.factories import make_instrument, put_candles

LIVE = re.compile("^Live")
PHONE = {"width": 360, "height": 740}
WIDE = {"width": 1440, "height": 900}
TOUCHED: dict[str, Any] = {"viewport": PHONE, "has_touch": True, "is_mobile": True}
UNREADABLE = "no answer of the service"
REACHED = "const { chart, flow } = await (await import('/static/terminal/terminal.js')).complete"
REACH = f"async () => {{ {REACHED}; window.reached = {{ chart, flow }}; }}"
IN_MEMORY, STORED = 500, 2_600


@pytest.fixture
def charted(publisher: User, server: Server) -> Iterator[Ticker]:
    """Minutes without a hole up to this one, which two ticks have begun."""
    this_minute = clock.now_ms() // MINUTE_MS * MINUTE_MS
    times = [this_minute - back * MINUTE_MS for back in range(IN_MEMORY, 0, -1)]
    for symbol in SYMBOLS:
        put_candles(symbol, "1m", times)
        store(symbol, minutes(STORED, from_ms=this_minute - STORED * MINUTE_MS))
    with ticking(server) as ticker:
        for symbol in SYMBOLS:
            ticker(symbol, 2)
        wait_for_quotes()
        yield ticker


@pytest.fixture
def unquoted(publisher: User) -> None:
    make_instrument("NEWUSD")


def end(signal_id: Any) -> None:
    def close() -> None:
        signal = Signal.objects.select_related("instrument").get(pk=signal_id)
        quote = Quoted(Decimal("1.1842"), Decimal("1.1844"), clock.now_ms())
        assert close_signal(Closing.at_current(signal, Signal.CloseReason.MANUAL, quote, clock.now_ms()))

    beside(close)


def hear(server: Server, *, is_heard: bool) -> None:
    async def tell() -> None:
        for stream in streams.STREAMS:
            stream.notify_liveness(is_heard)

    server.run(tell())


def summary(page: Page) -> Any:
    return page.locator("#connection summary")


def live(page: Page) -> Page:
    expect(summary(page)).to_have_text(LIVE)
    return page


def bid(page: Page, symbol: str = "BTCUSD") -> Any:
    return page.locator(f"tr[data-symbol={symbol}] [data-cell=bid]")


def choose(page: Page, symbol: str) -> None:
    page.locator(f"tr[data-symbol={symbol}] button").click()


def chosen(page: Page) -> Any:
    return page.locator("#chart-symbol")


def box_of(page: Page, selector: str) -> Any:
    found = page.locator(selector).bounding_box()
    assert found is not None
    return found


def of_chart(page: Page, says: str) -> Any:
    """What an expression about the page's `chart` and `flow` says."""
    page.evaluate(REACH)
    return page.evaluate(f"() => {{ const {{ chart, flow }} = window.reached; return {says}; }}")


def until_chart(page: Page, says: str) -> None:
    # What is waited for may not be a promise, which would count as true.
    page.evaluate(REACH)
    page.wait_for_function(f"() => {{ const {{ chart, flow }} = window.reached; return {says}; }}")


def shown(page: Page) -> Page:
    until_chart(page, "chart.isShown && chart.bars.length > 0")
    return page


def opened(open_page: OpenPage, path: str = "/terminal?symbol=BTCUSD&tf=1m", **options: Any) -> Page:
    return shown(live(open_page(path, **{"viewport": WIDE, **options})))


def drag(page: Page, by_px: int) -> None:
    """As a mouse does, to the right for what is older."""
    box = box_of(page, "#chart")
    pull(page, (box["x"] + box["width"] / 2, box["y"] + box["height"] / 3), (by_px, 0))
    page.mouse.move(0, 0)


def pull(page: Page, at: tuple[float, float], by: tuple[int, int]) -> None:
    page.mouse.move(*at)
    page.mouse.down()
    page.mouse.move(at[0] + by[0], at[1] + by[1], steps=8)
    page.mouse.up()
