"""The terminal in real Chromium: live for everybody, without a gap, by keyboard, on a phone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from playwright.sync_api import Page, expect

from accounts.models import User
from accounts.open_streams.registry import open_streams
from core import clock
from market.models import LastQuote
from signals_feed.closing import Closing, close_signal
from signals_feed.models import Signal
from signals_feed.rules import Quoted
from tests.browser.conftest import OpenPage
from tests.browser.looks import faults
from tests.client import Server, drop_sockets
from tests.contract.streams.publishing import publish_signal
from tests.contract.streams.ticker import Ticker, ticking
from tests.factories import make_instrument, make_news, make_user
from tests.patience import wait_until

pytestmark = pytest.mark.also_on("oldest")

LIVE = re.compile("^Live")
SYMBOLS = ("BTCUSD", "EURUSD")
STREAMS, PANES = 3, 5


@pytest.fixture
def publisher(settings: Any, server: Server) -> User:
    settings.DEMO = settings.PUBLIC_TERMINAL = True
    for symbol in SYMBOLS:
        make_instrument(symbol)
    make_news("Bitcoin steadies", category="crypto")
    return make_user("marta")


@pytest.fixture
def ticker(publisher: User, server: Server) -> Iterator[Ticker]:
    with ticking(server) as made:
        for symbol in SYMBOLS:
            made(symbol)
        wait_for_quotes(*SYMBOLS)
        yield made


def wait_for_quotes(*symbols: str) -> None:
    """Until its quote is stored, an instrument answers the history of the kind that it waits for: none."""
    wait_until(lambda: LastQuote.objects.filter(instrument__symbol__in=symbols).count() == len(symbols))


def beside(act: Callable[[], Any]) -> Any:
    """In a thread that may use the ORM: this one belongs to the browser."""

    def run() -> Any:
        try:
            return act()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as threads:
        return threads.submit(run).result()


def live(page: Page) -> Page:
    expect(page.locator("#connection summary")).to_have_text(LIVE)
    return page


def bid(page: Page, symbol: str = "BTCUSD") -> Any:
    return page.locator(f"tr[data-symbol={symbol}] [data-cell=bid]")


@pytest.mark.also_on("firefox")
def test_visitor_sees_prices_move_without_a_login(ticker: Ticker, open_page: OpenPage) -> None:
    page = live(open_page("/"))

    (tick,) = ticker("BTCUSD")

    expect(bid(page)).to_have_text(f"{tick.bid:.5f}")
    expect(page.locator("#news li")).to_contain_text("Bitcoin steadies")


def test_two_tabs_share_the_streams_and_another_visitor_has_their_own(
    ticker: Ticker, server: Server, open_page: OpenPage
) -> None:
    first = live(open_page("/"))
    second = first.context.new_page()
    second.goto("/")
    stranger = open_page("/")

    for page in (second, stranger):
        live(page)
        page.locator("#connection summary").click()
        expect(page.locator("#connection li", has_text="live")).to_have_count(PANES)
    (tick,) = ticker("BTCUSD")

    for page in (first, second, stranger):
        expect(bid(page)).to_have_text(f"{tick.bid:.5f}")
    assert server.run(open_streams.count()) == 2 * STREAMS


def test_lost_sockets_come_back_and_nothing_is_missed(
    ticker: Ticker, server: Server, open_page: OpenPage
) -> None:
    page = live(open_page("/"))
    page.locator("#connection summary").click()
    prices = page.locator("#connection li", has_text="Prices")
    expect(prices).to_contain_text("live")

    drop_sockets(server)
    (tick,) = ticker("BTCUSD")

    expect(prices).to_contain_text("1 reconnect, nothing missed")
    expect(bid(page)).to_have_text(f"{tick.bid:.5f}")


def test_signal_appears_is_drawn_and_ends_without_a_reload(
    ticker: Ticker, publisher: User, open_page: OpenPage
) -> None:
    page = live(open_page("/"))
    signals = page.locator("#signals li.signal")
    expect(page.locator("#signals")).to_be_empty()

    signal_id = beside(lambda: publish_signal("BTCUSD", publisher))
    expect(signals).to_contain_text("marta")
    ticker("BTCUSD")
    expect(signals.locator("[data-part=result]")).to_contain_text(re.compile(r" R.*now"))

    def end() -> None:
        signal = Signal.objects.select_related("instrument").get(pk=signal_id)
        quote = Quoted(Decimal("1.1842"), Decimal("1.1844"), clock.now_ms())
        assert close_signal(Closing.at_current(signal, Signal.CloseReason.MANUAL, quote, clock.now_ms()))

    beside(end)
    expect(signals.locator("[data-part=result]")).to_contain_text("+1,000.0 pips")


def test_gain_stays_where_another_signal_comes(ticker: Ticker, publisher: User, open_page: OpenPage) -> None:
    page = live(open_page("/"))
    signals = page.locator("#signals li.signal")
    beside(lambda: publish_signal("BTCUSD", publisher))
    expect(signals).to_have_count(1)
    ticker("BTCUSD")
    gain = signals.filter(has_text="BTCUSD").locator("[data-part=result]")
    expect(gain).to_contain_text(re.compile(r" R.*now"))

    beside(lambda: publish_signal("EURUSD", publisher))

    expect(signals).to_have_count(2)
    expect(gain).to_contain_text(re.compile(r" R.*now"))


def test_watchlist_is_walked_by_keyboard_and_remembered(ticker: Ticker, open_page: OpenPage) -> None:
    page = live(open_page("/"))
    page.get_by_role("button", name="BTCUSD").focus()

    page.keyboard.press("ArrowDown")

    expect(page.locator("#chart-symbol")).to_have_text("EURUSD")
    expect(page.get_by_role("button", name="EURUSD")).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#chart-caption")).to_contain_text("EURUSD, ")
    page.reload()
    expect(page.locator("#chart-symbol")).to_have_text("EURUSD")


def test_timeframe_is_chosen_and_its_candles_shown(ticker: Ticker, open_page: OpenPage) -> None:
    page = live(open_page("/"))

    page.get_by_role("radio", name="15m").check(force=True)

    expect(page.locator("#chart-caption")).to_contain_text("candles of 15m")


def test_timeframe_that_is_chosen_before_there_is_a_chart_counts(ticker: Ticker, open_page: OpenPage) -> None:
    page = open_page("/docs")
    page.route("**/panes*.js", lambda route: None)
    page.goto("/")
    live(page)
    page.get_by_text("15m", exact=True).click()
    page.unroute_all()

    expect(page.locator("#chart-caption")).to_contain_text("candles of 15m")
    expect(page.get_by_role("radio", name="15m")).to_be_checked()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_fits_every_window_and_breaks_no_rule_of_access(
    ticker: Ticker, publisher: User, open_page: OpenPage, scheme: str
) -> None:
    beside(lambda: publish_signal("BTCUSD", publisher))
    page = live(open_page("/", color_scheme=scheme, reduced_motion="reduce"))
    expect(page.locator("#signals li.signal")).to_have_count(1)

    assert faults(page, "terminal", scheme) == []
