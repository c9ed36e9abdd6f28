"""Publishing as a person does it: beside the live quote, with the keyboard, on a phone."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import Permission
from playwright.sync_api import Page, Route, expect

from accounts.models import User
from core import clock
from signals_feed.models import RulesBegun
from tests.browser.looks import faults, misplaced, violations
from tests.browser.settings.test_keys_page import NAME_OF_FOCUSED, PASSWORD, press_on, tab_to, width_of
from tests.client import Server
from tests.factories import make_calendar, make_instrument, make_signal, make_user, put_candles, put_quote

from .conftest import OpenPage

PAGE = "/settings/signals"
FIFTEEN_MS = 900_000
BARS = 20


@pytest.fixture(autouse=True)
def anna(server: Server) -> User:
    # A time to come, so that the quote is fresh however long the browser takes.
    make_instrument("EURUSD", stale_after_s=3_600)
    make_instrument("GBPUSD", stale_after_s=3_600)
    quote("EURUSD", 1.0841)
    quote("GBPUSD", 1.3102)
    user = make_user("anna", PASSWORD)
    user.user_permissions.add(Permission.objects.get(codename="publish_signal"))
    make_signal(user=user, status="closed")
    RulesBegun.objects.create(rules=2)
    minute = clock.now_ms() // FIFTEEN_MS * FIFTEEN_MS
    put_candles("EURUSD", "15m", [minute - ago * FIFTEEN_MS for ago in range(BARS, 0, -1)])
    return user


@pytest.fixture
def closed() -> None:
    """Also an instrument whose market opens for half an hour a week."""
    opens = datetime.now(UTC) + timedelta(days=3)
    make_instrument("AAPL", calendar=make_calendar("seldom", f"{opens:%a}-{opens:%a} 12:00-12:30"))
    put_quote("AAPL", at_ms=1)


@pytest.fixture
def bitcoin() -> None:
    make_instrument("BTCUSD", type="crypto", digits=2, stale_after_s=3_600)
    put_quote("BTCUSD", 87350.02, 87352.16)
    minute = clock.now_ms() // FIFTEEN_MS * FIFTEEN_MS
    put_candles("BTCUSD", "15m", [minute - ago * FIFTEEN_MS for ago in range(BARS, 0, -1)])


def quote(symbol: str, bid: float) -> None:
    put_quote(symbol, bid, round(bid + 0.00014, 5))


def log_in(page: Page) -> None:
    page.goto(f"/accounts/login/?next={PAGE}")
    page.get_by_label("Username or email").fill("anna")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("main").get_by_role("button", name="Log in", exact=True).click()
    page.wait_for_url(f"**{PAGE}")


def fill(page: Page, entry: str = "1.08424", stop_loss: str = "1.0810", take_profit: str = "1.0900") -> None:
    page.get_by_label("Entry").fill(entry)
    page.get_by_label("Stop").fill(stop_loss)
    page.get_by_label("Target").fill(take_profit)


def review(page: Page) -> None:
    page.get_by_role("button", name="Publish", exact=True).click()


def publish(page: Page) -> None:
    review(page)
    page.get_by_role("button", name="Publish permanently").click()


def test_quote_beside_the_form_is_live_and_says_when_it_is_not(open_page: OpenPage) -> None:
    page = open_page()
    log_in(page)
    quote("EURUSD", 1.0855)
    page.locator("[data-bid]", has_text="1.08550").wait_for()

    page.get_by_label("Instrument").select_option("GBPUSD")
    page.locator("[data-bid]", has_text="1.31020").wait_for()
    page.get_by_label("Direction").select_option("sell")
    expect(page.get_by_label("Entry")).to_have_attribute("placeholder", "Market price: 1.31020")

    page.route("**/live?*", lambda route: route.fulfill(status=200, body="no JSON"))
    page.get_by_text("The quote could not be loaded").wait_for()
    expect(page.locator("[data-age]")).to_have_text(re.compile(r"^\d+ s$"))
    page.unroute("**/live?*")
    page.get_by_text("The quote could not be loaded").wait_for(state="hidden")


# All that is read out with a field, at one moment.
DESCRIBED = """(field) => field.getAttribute("aria-describedby").split(" ").filter(Boolean)
    .map((id) => document.getElementById(id).textContent).join(" ")"""


def test_refusal_stands_beside_its_field_and_is_read_out_with_it(open_page: OpenPage) -> None:
    page = open_page()
    log_in(page)
    fill(page)
    quote("EURUSD", 1.0855)
    # Sent although the market has moved since the page looked: the service has the last word.
    page.locator("form[data-publish]").evaluate("form => form.submit()")

    field = page.get_by_label("Entry")
    expect(field).to_have_attribute("aria-invalid", "true")
    words = field.evaluate(DESCRIBED)
    assert words.count("may not be below the ask, which is 1.08564") == 1
    assert page.get_by_label("Stop").input_value() == "1.0810"

    page.route("**/live?*", lambda route: None)
    field.fill("1.0860")
    expect(field).not_to_have_attribute("aria-invalid", "true")
    expect(page.get_by_text("may not be below the ask")).to_be_hidden()


def test_what_would_be_refused_is_said_before_anything_is_sent(open_page: OpenPage) -> None:
    page = open_page()
    log_in(page)
    fill(page, entry="1.0700")
    page.get_by_text("may not be below the ask, which is 1.08424").wait_for()
    review(page)
    field = page.get_by_label("Entry")
    expect(field).to_be_focused()
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_role("dialog")).to_be_hidden()
    field.fill("1.08424")
    expect(field).not_to_have_attribute("aria-invalid", "true")


def test_what_is_wrong_stands_at_its_field_while_it_is_typed(open_page: OpenPage) -> None:
    page = open_page(viewport={"width": 360, "height": 740})
    log_in(page)
    for name, typed, told in (
        ("Entry", "abc", "This is not a price. Write it like 1.08424."),
        ("Stop", "1.0900", "The stop of a buy must be below the entry."),
    ):
        field = page.get_by_label(name, exact=True)
        field.fill(typed)
        message = page.locator(f"#{field.get_attribute('id')}_fault")
        expect(message).to_have_text(told)
        assert message.get_attribute("id") in str(field.get_attribute("aria-describedby")).split()
        above, below = field.bounding_box(), message.bounding_box()
        assert above
        assert below
        assert above["y"] + above["height"] <= below["y"] <= above["y"] + above["height"] + 16
        page.get_by_label("Entry").fill("1.08424")
        expect(page.locator("#id_entry_fault")).to_be_hidden()
    assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_error_goes_with_the_input_that_it_was_about(open_page: OpenPage) -> None:
    page = open_page()
    log_in(page)
    field = page.get_by_label("Entry")
    field.fill("abc")
    message = page.locator("#id_entry_fault")
    expect(message).to_have_text("This is not a price. Write it like 1.08424.")
    # No answer comes any more, so that nothing else can take it away.
    page.route("**/live?*", lambda route: None)
    field.fill("1.08424")
    expect(message).to_be_hidden()
    expect(field).not_to_have_attribute("aria-invalid", "true")


def test_form_stays_at_the_instrument_that_was_published(open_page: OpenPage) -> None:
    page = open_page()
    log_in(page)
    page.get_by_label("Instrument").select_option("GBPUSD")
    page.locator("[data-bid]", has_text="1.31020").wait_for()
    fill(page, "1.31034", "1.3050", "1.3200")
    publish(page)
    page.get_by_text("Published: buy GBPUSD.").wait_for()
    assert page.get_by_label("Instrument").input_value() == "GBPUSD"
    expect(page.locator("[data-symbol]")).to_have_text("GBPUSD")


def test_risk_and_reward_follow_what_is_typed(open_page: OpenPage) -> None:
    page = open_page()
    log_in(page)
    stakes = page.locator("[data-stakes] dd")
    expect(stakes).to_have_text(["–", "–", "–"])
    fill(page, entry="1.0850")
    expect(stakes).to_have_text(["40.0\xa0pips0.37%", "+50.0\xa0pips+0.46%", "1 : 1.25"])
    page.get_by_label("Target").fill("1.0930")
    expect(stakes.last).to_have_text("1 : 2.00")


def test_confirmation_names_the_terms_and_what_can_never_be_changed(open_page: OpenPage) -> None:
    page = open_page(viewport={"width": 360, "height": 740})
    log_in(page)
    fill(page)
    review(page)
    dialog = page.get_by_role("dialog", name="Publish this signal?")
    expect(dialog.get_by_role("button", name="Back to the form")).to_be_focused()
    expect(dialog.get_by_text("Buy EURUSD")).to_be_in_viewport()
    for text in (
        "1.08424",
        "1.08100",
        "1.09000",
        "−1.00\xa0R",
        "+1.78\xa0R",
        "1 : 1.78",
        "it can never be deleted",
    ):
        expect(dialog).to_contain_text(text)
    assert violations(page) == []
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    assert page.locator("[data-signal]").count() == 0
    assert page.get_by_label("Entry").input_value() == "1.08424"


def test_closed_market_shuts_the_form_and_says_when_it_opens(closed: None, open_page: OpenPage) -> None:
    page = open_page()
    log_in(page)
    send = page.get_by_role("button", name="Publish", exact=True)
    expect(send).to_be_disabled()
    fill(page)
    expect(send).to_be_enabled()
    page.get_by_label("Instrument").select_option("AAPL")
    expect(send).to_be_disabled()
    fill(page)
    expect(send).to_be_disabled()
    expect(page.get_by_text("The market of AAPL is closed. It opens")).to_be_visible()
    page.get_by_label("Instrument").select_option("EURUSD")
    expect(page.get_by_text("The market of AAPL is closed. It opens")).to_be_hidden()
    fill(page)
    expect(send).to_be_enabled()


def test_copied_price_is_taken_with_its_separators(bitcoin: None, open_page: OpenPage) -> None:
    page = open_page()
    log_in(page)
    page.get_by_label("Instrument").select_option("BTCUSD")
    page.locator("[data-ask]", has_text="87,352.16").wait_for()
    fill(page, page.locator("[data-ask]").inner_text(), "86,000.00", "88,000.00")
    chart = page.get_by_role("img", name="Candles of BTCUSD")
    expect(chart.locator("text.label.entry")).to_have_count(1)
    publish(page)
    page.get_by_text("Published: buy BTCUSD.").wait_for()


def test_chart_shows_the_candles_and_the_levels_that_are_typed(open_page: OpenPage) -> None:
    page = open_page()
    log_in(page)
    chart = page.get_by_role("img", name="Candles of EURUSD")
    expect(chart.locator("rect.up, rect.down")).to_have_count(BARS)
    fill(page)
    expect(chart.locator("text.label")).to_have_count(4)
    times = chart.locator("text.time").all_text_contents()
    assert times[-1] == "UTC"
    assert len(times) > 1
    assert misplaced(page, "[data-chart]", "text.time") == []
    assert misplaced(page, "[data-chart]", "text.label") == []
    expect(chart.locator("rect.risk")).to_have_count(1)
    expect(chart.locator("rect.reward")).to_have_count(1)
    page.get_by_role("button", name="1h", exact=True).click()
    expect(page.get_by_role("button", name="1h", exact=True)).to_have_attribute("aria-pressed", "true")


def test_signal_without_an_entry_is_published_at_the_market(open_page: OpenPage) -> None:
    page = open_page()
    log_in(page)
    fill(page, entry="")
    expect(page.get_by_label("Entry")).to_have_attribute("placeholder", "Market price: 1.08424")
    page.get_by_text("1 : 1.78").first.wait_for()
    review(page)
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Market price, now 1.08424")
    # While somebody thinks, it passes the target and comes back.
    quote("EURUSD", 1.0955)
    expect(dialog.get_by_role("status")).to_contain_text("must be above the")
    expect(dialog.get_by_role("button", name="Publish permanently")).to_be_disabled()
    expect(dialog).to_contain_text("Market price, last 1.08424")
    # A buy at the price that was shown first would be refused now.
    quote("EURUSD", 1.0855)
    expect(dialog).to_contain_text("Market price, now 1.08564")

    page.get_by_role("button", name="Publish permanently").click()

    page.get_by_text("Published: buy EURUSD.").wait_for()
    expect(page.locator("[data-signal] dd").first).to_have_text("1.08564")


def test_page_fits_every_screen(open_page: OpenPage) -> None:
    page = open_page()
    log_in(page)
    fill(page)
    page.get_by_text("1 : 1.78").first.wait_for()
    assert faults(page, ".form-and-quote", "input, select, dd, [data-send], [data-chart]") == []


def test_pressing_twice_sends_one_form(open_page: OpenPage) -> None:
    page = open_page()
    log_in(page)
    fill(page)
    held: list[Route] = []
    page.route(f"**{PAGE}", lambda route: hold_form(route, held))
    review(page)
    press_on(page, "Publish permanently", held)
    held[0].continue_()
    page.get_by_text("Published: buy EURUSD.").wait_for()
    assert len(held) == 1
    assert page.locator("[data-signal]").count() == 1


def hold_form(route: Route, held: list[Route]) -> None:
    if route.request.method == "POST":
        held.append(route)
    else:
        route.continue_()


def test_signal_is_published_by_keyboard_alone(open_page: OpenPage) -> None:
    page = open_page()
    log_in(page)
    for name, text in (("Entry", "1.08424"), ("Stop", "1.0810"), ("Target", "1.0900")):
        tab_to(page, name)
        page.keyboard.type(text)
    page.keyboard.press("Tab")
    assert page.evaluate(NAME_OF_FOCUSED) == "Publish"
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Back to the form")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_text("Published: buy EURUSD.").wait_for()


def test_nothing_is_wider_than_a_small_phone(open_page: OpenPage) -> None:
    page = open_page(viewport={"width": 360, "height": 740})
    log_in(page)
    fill(page)
    publish(page)
    page.get_by_text("Published: buy EURUSD.").wait_for()
    widths = [opened_width(page)]
    page.goto("/publishers/anna")
    widths.append(opened_width(page))
    assert widths == [360, 360]


def opened_width(page: Page) -> int:
    page.evaluate("document.querySelectorAll('details').forEach((part) => (part.open = true))")
    return width_of(page)
