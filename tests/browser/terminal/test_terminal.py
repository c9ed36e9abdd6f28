"""The terminal in real browsers: live for everybody, without a gap, whatever changes around it."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import APIResponse, Page, Route, expect

from accounts.keys.caller import PAGE_STREAMS, of_pages
from accounts.models import User
from accounts.open_streams.registry import open_streams
from core import clock
from core.times import moment
from instruments.models import Instrument
from market.models import UnfinishedPast
from market.streams import market_streams as streams
from tests.browser.conftest import SYMBOLS, OpenPage, beside, look_until
from tests.browser.looks import faults
from tests.client import Server, drop_sockets
from tests.contract.streams.publishing import publish_signal
from tests.contract.streams.ticker import Ticker
from tests.factories import make_account, make_user, put_candles

from .conftest import bid, choose, chosen, end, live, summary

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
PASSWORD = "a long walk 7"
STREAMS, PANES = 3, 5
NOW = re.compile(r" R.*now")


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


@pytest.mark.also_on("firefox")
def test_visitor_sees_prices_move_and_chooses_what_is_charted(ticker: Ticker, open_page: OpenPage) -> None:
    page = live(open_page("/"))
    (tick,) = ticker("BTCUSD")
    expect(bid(page)).to_have_text(f"{tick.bid:.5f}")
    expect(page.locator("#news li")).to_contain_text("Bitcoin steadies")
    expect(page.locator("#coming")).to_have_count(0)

    page.get_by_role("button", name="BTCUSD").focus()
    page.keyboard.press("ArrowDown")
    page.get_by_role("radio", name="15m").check(force=True)
    expect(page.get_by_role("button", name="EURUSD")).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#chart-caption")).to_contain_text(re.compile("^EURUSD, .*candles of 15m"))
    page.reload()
    expect(chosen(page)).to_have_text("EURUSD")


@pytest.mark.also_on("oldest")
def test_two_tabs_share_the_streams_and_another_visitor_has_their_own(
    ticker: Ticker, server: Server, open_page: OpenPage
) -> None:
    first = live(open_page("/"))
    second = first.context.new_page()
    second.goto("/")
    stranger = open_page("/")

    for page in (second, stranger):
        summary(live(page)).click()
        expect(line(page, "live")).to_have_count(PANES)
    (tick,) = ticker("BTCUSD")

    for page in (first, second, stranger):
        expect(bid(page)).to_have_text(f"{tick.bid:.5f}")
    assert server.run(open_streams.count()) == 2 * STREAMS


@pytest.mark.also_on("oldest")
def test_lost_sockets_come_back_and_nothing_is_missed(
    ticker: Ticker, server: Server, open_page: OpenPage
) -> None:
    page = live(open_page("/"))
    summary(page).click()
    expect(line(page, "Prices")).to_contain_text("live")

    drop_sockets(server)
    (tick,) = ticker("BTCUSD")

    expect(line(page, "Prices")).to_contain_text("1 reconnect, nothing missed")
    expect(bid(page)).to_have_text(f"{tick.bid:.5f}")


def test_signal_appears_keeps_its_gain_and_ends_without_a_reload(
    ticker: Ticker, publisher: User, open_page: OpenPage
) -> None:
    page = live(open_page("/"))
    signals = page.locator("#signals li.signal")
    expect(page.locator("#signals")).to_be_empty()

    signal_id = beside(lambda: publish_signal("BTCUSD", publisher))
    expect(signals).to_contain_text("marta")
    ticker("BTCUSD")
    result = signals.filter(has_text="BTCUSD").locator("[data-part=result]")
    expect(result).to_contain_text(NOW)
    beside(lambda: publish_signal("EURUSD", publisher))
    expect(signals).to_have_count(2)
    expect(result).to_contain_text(NOW)

    end(signal_id)
    expect(result).to_contain_text("+1,000.0 pips")


def test_what_came_and_was_chosen_before_the_panes_counts(
    ticker: Ticker, publisher: User, open_page: OpenPage
) -> None:
    beside(lambda: publish_signal("BTCUSD", publisher))
    ticker("BTCUSD")
    page = open_page("/docs")
    page.route("**/panes*.js", lambda route: None)
    page.goto("/")
    expect(bid(live(page))).not_to_be_empty()
    page.get_by_text("15m", exact=True).click()

    page.unroute_all()

    expect(page.locator("#chart-caption")).to_contain_text("candles of 15m")
    expect(page.get_by_role("radio", name="15m")).to_be_checked()
    expect(page.locator("#signals .result").first).to_contain_text(" R")


def test_page_fits_every_window_and_breaks_no_rule_of_access(
    ticker: Ticker, publisher: User, open_page: OpenPage
) -> None:
    beside(lambda: publish_signal("BTCUSD", publisher))
    page = live(open_page("/"))
    expect(page.locator("#signals li.signal")).to_have_count(1)

    assert faults(page) == []


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


def test_prices_of_another_series_take_the_place_of_all_that_is_shown(
    ticker: Ticker, server: Server, open_page: OpenPage
) -> None:
    page = live(open_page("/"))
    choose(page, "BTCUSD")
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
    page.route(
        "**/api/market/BTCUSD/history?*", lambda route: route.fulfill(json={"ohlcv": [], "next": None})
    )

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
    summary(live(page)).click()
    for _ in range(3):
        expect(line(page, "Order flow")).to_contain_text("live")
        expect(line(page, "Signals")).to_contain_text("as many streams open as they may")
        expect(summary(page)).to_have_text("Live except signals: limit reached")
        expect(page.locator("#connection")).to_have_attribute("data-status", "partial")
        expect(page.locator("#signals-pane .note")).to_contain_text("The list is updated every 20 s.")
        drop_sockets(server)
        expect(line(page, "Prices")).to_contain_text("reconnect")

    beside(lambda: publish_signal("BTCUSD", make_user("marta-2")))
    page.clock.run_for(21_000)

    expect(page.locator("#signals li.signal")).to_contain_text("marta-2")


def test_page_that_is_restored_knows_what_it_missed_and_reopens_no_signal(
    ticker: Ticker, publisher: User, open_page: OpenPage
) -> None:
    signal_id = beside(lambda: publish_signal("BTCUSD", publisher))
    ticker("BTCUSD")
    page = live(open_page("/"))
    signals, caption = page.locator("#signals li.signal"), page.locator("#chart-caption")
    result = signals.filter(has_text="BTCUSD").locator("[data-part=result]")
    expect(signals).to_have_count(1)
    leave_and_return = "type => dispatchEvent(new PageTransitionEvent(type, { persisted: true }))"
    page.evaluate(leave_and_return, "pagehide")
    (tick,) = ticker("BTCUSD")
    expect(caption).not_to_contain_text(f"now {tick.bid:.5f}")
    held: list[tuple[Route, APIResponse]] = []
    page.route("**/api/signals?*", lambda route: held.append((route, route.fetch())))

    page.evaluate(leave_and_return, "pageshow")

    expect(caption).to_contain_text(f"now {tick.bid:.5f}")
    look_until(page, lambda: len(held) == 2)
    end(signal_id)
    expect(result).to_contain_text("+1,000.0 pips")
    for route, answer in held:
        with page.expect_event("requestfinished"):
            route.fulfill(response=answer)
    beside(lambda: publish_signal("EURUSD", publisher))
    expect(signals).to_have_count(2)
    expect(result).to_contain_text("+1,000.0 pips")


@pytest.fixture
def coming(publisher: User) -> None:
    """The past of both instruments; another process works on it."""
    for symbol in SYMBOLS:
        UnfinishedPast.objects.create(
            instrument=Instrument.objects.get(symbol=symbol),
            until_at=timezone.now(),
            maker="elsewhere:1:0.0",
            begun_at=timezone.now() + timedelta(hours=1),
        )


@pytest.mark.usefixtures("coming")
def test_strip_says_how_far_the_past_of_a_demo_is_and_goes_away(
    ticker: Ticker, publisher: User, open_page: OpenPage
) -> None:
    # No past is taken before a candle that has ended, and an hour rarely ends between the first tick and it.
    page = live(open_page("/?tf=1h"))
    strip, caption = page.get_by_role("status").filter(has_text="past"), page.locator("#chart-caption")
    expect(strip).to_have_text("The demo's past is being made: 0 of 2 instruments")
    (tick,) = ticker("BTCUSD")
    expect(caption).to_contain_text("BTCUSD")

    opened_ms = [tick.time_ms - tick.time_ms % HOUR_MS - hours * HOUR_MS for hours in range(300, 1, -1)]
    put_candles("BTCUSD", "1h", opened_ms)
    past = UnfinishedPast.objects.filter(instrument__symbol="BTCUSD")
    beside(lambda: past.update(made_at=timezone.now()))
    expect(strip).to_have_text("The demo's past is being made: 1 of 2 instruments")
    expect(caption).to_contain_text("300 candles of 1h")

    beside(lambda: (publish_signal("EURUSD", publisher), UnfinishedPast.objects.all().delete()))
    expect(strip).to_have_count(0)
    expect(page.locator("#signals li.signal")).to_contain_text("marta")
