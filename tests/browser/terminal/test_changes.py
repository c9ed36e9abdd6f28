"""The terminal while things change around it: logins, tabs, tiers, what is asked for and answered late."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from playwright.sync_api import APIResponse, Page, Route, expect

from accounts.keys.caller import PAGE_STREAMS, of_pages
from accounts.models import User
from accounts.open_streams.registry import open_streams
from core import clock
from core.times import moment
from market.streams import market_streams as streams
from signals_feed.closing import Closing, close_signal
from signals_feed.models import Signal
from signals_feed.rules import Quoted
from tests.browser.conftest import OpenPage, look_until
from tests.client import Server, drop_sockets
from tests.contract.streams.publishing import publish_signal
from tests.contract.streams.ticker import Ticker
from tests.factories import make_account, make_instrument, make_user, put_quote

from .charted import charted
from .test_chart import opened
from .test_chart_tools import row, switch_on
from .test_terminal import beside, live, publisher, ticker

__all__ = ("charted", "publisher", "ticker")
DAY_MS = 86_400_000
PASSWORD = "a long walk 7"


@pytest.fixture
def customer(publisher: User) -> User:
    user = make_user("ada", PASSWORD)
    make_account(user)
    return user


def log_in(page: Page) -> None:
    page.goto("/accounts/login/")
    page.get_by_label("Username").fill("ada")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.locator("form[action*=login], main form").get_by_role("button").first.click()
    page.wait_for_url(lambda url: "login" not in url)


def line(page: Page, stream: str) -> Any:
    return page.locator("#connection li", has_text=stream)


def test_login_in_another_tab_brings_both_back(ticker: Ticker, customer: User, open_page: OpenPage) -> None:
    first = live(open_page("/"))
    second = first.context.new_page()
    log_in(second)
    expect(first.locator("#connection")).to_have_attribute("data-status", "refused")

    second.goto("/")

    live(second)
    live(first)


ASK_WHILE_ANOTHER_LOGS_IN = """async () => {
    const { Token } = await import("/static/terminal/streams/token.js");
    const asked = [];
    let change;
    const changed = new Promise((go) => (change = go));
    globalThis.fetch = async (path, { headers }) => {
        asked.push(headers["X-CSRFToken"]);
        await changed;
        if (asked.at(-1) !== "of now") return new Response("", { status: 403 });
        return new Response('{"token": "good", "expires_at": "2999-01-01T00:00:00Z"}');
    };
    const token = new Token("of before");
    const waiting = token.get();
    token.useCsrf("of now");
    change();
    return [await waiting.catch(({ message }) => message), ...asked];
}"""


def test_login_while_a_token_is_asked_for_refuses_nobody(open_page: OpenPage) -> None:
    assert open_page("/docs").evaluate(ASK_WHILE_ANOTHER_LOGS_IN) == ["good", "of before", "of now"]


def test_service_that_hears_no_prices_is_shown_as_stale(
    ticker: Ticker, server: Server, open_page: OpenPage
) -> None:
    async def tell(is_heard: bool) -> None:
        for stream in streams.STREAMS:
            stream.notify_liveness(is_heard)

    page = live(open_page("/"))
    connection = page.locator("#connection")

    server.run(tell(False))
    expect(connection).to_have_attribute("data-status", "stale")
    expect(connection.locator("summary")).to_have_text("Stale: no new prices")

    server.run(tell(True))
    live(page)


def test_prices_of_another_series_take_the_place_of_all_that_is_shown(
    ticker: Ticker, server: Server, open_page: OpenPage
) -> None:
    page = live(open_page("/"))
    page.get_by_role("button", name="BTCUSD").click()
    caption, row = page.locator("#chart-caption"), page.locator("tr[data-symbol=BTCUSD]")
    expect(caption).to_contain_text("BTCUSD, ")
    now_ms = clock.now_ms()
    at, day_before = moment(now_ms).isoformat(), moment(now_ms - DAY_MS).isoformat()
    before = {"time": day_before, "open": 49, "high": 51, "low": 49, "close": 50, "volume": 1}
    candle = {"time": at, "open": 49.5, "high": 51, "low": 49, "close": 50.5, "volume": 1}
    quote = {"bid": 50.5, "ask": 50.6, "spread": 0.1, "timestamp": at}
    asked = set[str]()

    def answer(route: Route) -> None:
        """At first as a process does that has not heard of the new series."""
        if route.request.url in asked:
            candles = [before, candle] if "timeframe=1d" in route.request.url else [candle]
            route.fulfill(json={"ohlcv": candles, "quote": quote})
        else:
            asked.add(route.request.url)
            route.continue_()

    page.route("**/api/market/BTCUSD?*", answer)

    async def begin() -> None:
        streams.prices.begin_series("BTCUSD", None, clock.now_ms())

    server.run(begin())

    expect(caption).to_contain_text("1 candles of 1m: between 49.00000 and 51.00000, now 50.50000")
    expect(row.locator("[data-cell=bid]")).to_have_text("50.50000")
    expect(row.locator("[data-cell=change]")).to_have_text("+1.00%")


def test_page_without_a_third_stream_says_so_and_asks_for_signals(
    ticker: Ticker, server: Server, customer: User, open_page: OpenPage
) -> None:
    account_id = customer.account.pk

    async def leave_two() -> None:
        for _ in range(PAGE_STREAMS - 2):
            await open_streams.claim(
                of_pages(account_id, ""), "/ws/market", PAGE_STREAMS, on_end=lambda code: None
            )

    server.run(leave_two())
    page = open_page("/accounts/login/")
    page.clock.install()
    log_in(page)
    page.goto("/")
    live(page).locator("#connection summary").click()
    for _ in range(3):
        expect(line(page, "Order flow")).to_contain_text("live")
        expect(line(page, "Signals")).to_contain_text("as many streams open as they may")
        expect(page.locator("#connection summary")).to_have_text("Live except signals: limit reached")
        expect(page.locator("#connection")).to_have_attribute("data-status", "partial")
        expect(page.locator("#signals-pane .note")).to_contain_text("The list is updated every 20 s.")
        drop_sockets(server)
        expect(line(page, "Prices")).to_contain_text("reconnect")

    beside(lambda: publish_signal("BTCUSD", make_user("marta-2")))
    page.clock.run_for(21_000)

    expect(page.locator("#signals li.signal")).to_contain_text("marta-2")


def test_page_that_is_restored_knows_what_it_missed(ticker: Ticker, open_page: OpenPage) -> None:
    ticker("BTCUSD")
    page = live(open_page("/"))
    leave_and_return = "type => dispatchEvent(new PageTransitionEvent(type, { persisted: true }))"
    page.evaluate(leave_and_return, "pagehide")
    (tick,) = ticker("BTCUSD")
    expect(page.locator("#chart-caption")).not_to_contain_text(f"now {tick.bid:.5f}")

    page.evaluate(leave_and_return, "pageshow")

    expect(page.locator("#chart-caption")).to_contain_text(f"now {tick.bid:.5f}")


def test_candles_of_one_instrument_never_stand_under_the_name_of_another(
    ticker: Ticker, open_page: OpenPage
) -> None:
    ticker("BTCUSD")
    page = live(open_page("/"))
    expect(page.locator("#chart-caption")).to_contain_text("BTCUSD, ")
    page.route("**/api/market/EURUSD?*", lambda route: None)

    page.get_by_role("button", name="EURUSD").click()

    expect(page.locator("#chart-caption")).to_have_text("EURUSD: waiting for candles.")


def test_watchlist_says_what_went_stale_and_what_is_new(ticker: Ticker, open_page: OpenPage) -> None:
    ticker("BTCUSD")
    page = open_page("/")
    page.clock.install()
    page.reload()
    row = live(page).locator("tr[data-symbol=BTCUSD]")
    expect(row).not_to_contain_text("stale")

    put_quote("BTCUSD", at_ms=clock.now_ms() - 300_000)
    beside(lambda: make_instrument("GBPUSD"))
    page.clock.run_for(61_000)

    expect(row).to_contain_text("stale")
    expect(page.locator("#watch-added")).to_contain_text("GBPUSD")
    ticker("BTCUSD")
    expect(row).not_to_contain_text("stale")


def test_answer_of_before_does_not_reopen_a_signal(
    ticker: Ticker, publisher: User, open_page: OpenPage
) -> None:
    signal_id = beside(lambda: publish_signal("BTCUSD", publisher))
    page = live(open_page("/"))
    signals = page.locator("#signals li.signal")
    result = signals.filter(has_text="BTCUSD").locator("[data-part=result]")
    expect(signals).to_have_count(1)
    held: list[tuple[Route, APIResponse]] = []
    page.route("**/api/signals?*", lambda route: held.append((route, route.fetch())))
    page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")
    look_until(page, lambda: len(held) == 2)

    beside(lambda: end(signal_id))
    expect(result).to_contain_text("+1,000.0 pips")
    for route, answer in held:
        with page.expect_event("requestfinished"):
            route.fulfill(response=answer)
    beside(lambda: publish_signal("EURUSD", publisher))
    expect(signals).to_have_count(2)

    expect(result).to_contain_text("+1,000.0 pips")


def end(signal_id: Any) -> None:
    signal = Signal.objects.select_related("instrument").get(pk=signal_id)
    quote = Quoted(Decimal("1.1842"), Decimal("1.1844"), clock.now_ms())
    assert close_signal(Closing.at_current(signal, Signal.CloseReason.MANUAL, quote, clock.now_ms()))


def test_indicators_of_another_tab_are_kept(charted: Ticker, open_page: OpenPage) -> None:
    page = opened(open_page)
    other = page.context.new_page()
    other.goto("/")
    switch_on(other, "SMA")
    page.bring_to_front()
    switch_on(page, "RSI")

    other.reload()

    for name in ("SMA", "RSI"):
        expect(row(other, name)).to_be_visible()
