"""Becoming a publisher: what one agrees to, the request, and what became of earlier ones."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from accounts.rights import publishing_right
from signals_feed.publishers.requests import ask_to_publish, decline_request
from tests.browser.conftest import OpenPage
from tests.browser.looks import faults, misplaced
from tests.client import Server
from tests.factories import make_account, make_instrument, make_user, put_quote
from tests.signals_feed.published_signals import make_published
from tests.staff import staff_client

PAGE = "/settings/signals"
WHY = "Gold and silver by a breakout rule that I have traded for six years, about ten signals a week."


@pytest.fixture
def session(server: Server) -> str:
    """Of somebody whom staff declined once."""
    account = make_account(make_user("ada"))
    request = ask_to_publish(account, "Crypto.", by=account.user)
    decline_request(request, "Tell us by which rule you trade.", by=make_user("boss", is_staff=True))
    return str(staff_client(account.user).cookies["sessionid"].value)


def opened(open_page: OpenPage, server: Server, session: str, **options: str) -> Page:
    page = open_page("/healthz", **options)
    page.context.add_cookies([{"name": "sessionid", "value": session, "url": server.url}])
    page.goto(PAGE)
    return page


def test_request_is_sent_seen_and_withdrawn(server: Server, session: str, open_page: OpenPage) -> None:
    page = opened(open_page, server, session)
    for term in ("never change", "never deleted", "counts on your public scorecard"):
        expect(page.get_by_role("main")).to_contain_text(term)
    expect(page.locator(".notice.warning")).to_contain_text("Tell us by which rule you trade.")
    page.get_by_role("button", name="Send the request").click()
    assert page.get_by_label("What you would publish").evaluate("field => field.validity.valueMissing")
    page.get_by_label("What you would publish").fill(WHY)
    page.get_by_role("button", name="Send the request").click()
    expect(page.get_by_role("heading", name="You asked to publish")).to_contain_text("waiting")
    expect(page.get_by_text(WHY)).to_be_visible()
    expect(page.get_by_role("button", name="Send the request")).to_have_count(0)
    page.get_by_role("button", name="Withdraw it").click()
    expect(page.get_by_text("Your request has been withdrawn.")).to_be_visible()
    expect(page.get_by_role("button", name="Send the request")).to_be_visible()


@pytest.fixture
def former(server: Server) -> str:
    """Of a publisher who lost the right while a signal was active."""
    account = make_account(make_user("anna"))
    make_instrument("EURUSD", stale_after_s=3_600)
    put_quote("EURUSD", 1.0841, 1.0842)
    make_published(user=account.user)
    publishing_right.switch(account.user, is_held=False, by="boss")
    return str(staff_client(account.user).cookies["sessionid"].value)


def test_former_publisher_follows_and_closes_what_is_active(
    server: Server, former: str, open_page: OpenPage
) -> None:
    page = opened(open_page, server, former)
    expect(page.locator(".notice")).to_contain_text("Staff withdrew your right to publish signals on")
    assert faults(page) == []
    put_quote("EURUSD", 1.0860, 1.0861)
    page.locator("[data-result]", has_text="+18.0").wait_for()
    page.locator("summary", has_text="Close now").click()
    page.get_by_role("button", name="Yes, close it now").click()
    page.get_by_text("Closed: buy EURUSD, +18.0\xa0pips.").wait_for()
    expect(page.locator("[data-signal]")).to_have_count(0)
    page.get_by_role("link", name="your scorecard").click()
    expect(page.get_by_role("heading", name="anna", exact=True)).to_be_visible()


def test_page_fits_every_window_and_breaks_no_rule(server: Server, session: str, open_page: OpenPage) -> None:
    page = opened(open_page, server, session)
    page.get_by_label("What you would publish").fill(WHY)
    page.get_by_role("button", name="Send the request").click()
    expect(page.get_by_text("waiting")).to_be_visible()
    assert faults(page) == []
    page.set_viewport_size({"width": 360, "height": 740})
    assert misplaced(page, ".card", "h2, h3, p, li, button, .badge") == []
