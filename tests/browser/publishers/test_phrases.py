"""On a small phone nothing that is read as one breaks: times, prices, results and their labels."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from accounts.models import User
from accounts.rights import publishing_right
from tests.browser.conftest import OpenPage
from tests.browser.looks import broken, misplaced
from tests.client import Server
from tests.factories import make_account, make_instrument, make_signal, make_user, put_quote
from tests.signals_feed.published_signals import close_at, make_published
from tests.staff import staff_client

PHONE = {"width": 360, "height": 740}
LONG = Decimal("87258.78")


@pytest.fixture
def anna(server: Server, settings: Any) -> User:
    """In the demo, with long prices, and a total of many digits."""
    settings.DEMO = settings.PUBLIC_TERMINAL = True
    make_instrument("EURUSD")
    bitcoin = make_instrument("BTCUSD", type="crypto", digits=2, stale_after_s=3_600)
    put_quote("BTCUSD", 87258.78, 87261.12)
    account = make_account(make_user("anna"))
    for is_held in (True, False, True):
        publishing_right.switch(account.user, is_held=is_held, by="boss")
    terms = {"entry": LONG, "stop_loss": LONG - 900, "take_profit": LONG + 1_000, "tradable_price": LONG}
    make_published(bitcoin, user=account.user, **terms)
    for number in range(12):
        at = timezone.now() - timedelta(days=1, minutes=number + 1)
        make_signal(
            user=account.user,
            status="closed",
            close_price=Decimal("1.0810"),
            published_at=at,
            closed_at=at + timedelta(seconds=45),
        )
    return account.user


@pytest.fixture
def signal(anna: User) -> str:
    closed = make_published(user=anna, published_at=timezone.now() - timedelta(days=1))
    close_at(closed, Decimal("1.0874"), Decimal("1.0875"))
    return str(closed.pk)


@pytest.fixture
def session(anna: User) -> str:
    return str(staff_client(anna).cookies["sessionid"].value)


def on_phone(open_page: OpenPage, server: Server, session: str = "") -> Page:
    page = open_page("/healthz", viewport=PHONE)
    if session:
        page.context.add_cookies([{"name": "sessionid", "value": session, "url": server.url}])
    return page


def test_signal_and_publisher(server: Server, signal: str, open_page: OpenPage) -> None:
    page = on_phone(open_page, server)
    page.goto(f"/signals/{signal}")
    assert broken(page, "time, .phrase, .prices dt, .prices dd") == []
    page.goto("/publishers/anna")
    assert broken(page, "time, .phrase, .symbols td") == []
    table = page.get_by_role("group", name="By instrument")
    expect(table.get_by_role("cell", name="−11.00\xa0R")).to_be_visible()
    assert table.evaluate("table => table.scrollWidth - table.clientWidth") == 0


def test_own_active_signals(server: Server, session: str, open_page: OpenPage) -> None:
    page = on_phone(open_page, server, session)
    page.goto("/settings/signals")
    page.locator("[data-price]", has_text="87,258.78").wait_for()
    assert broken(page, "time, [data-signal] dt, [data-signal] dd") == []
    assert misplaced(page, "[data-signal] .facts", "dt, dd") == []
    labels = page.locator("[data-signal] dt").evaluate_all(
        "(all) => all.map((each) => each.getBoundingClientRect().left)"
    )
    assert len(set(labels)) == 1
    assert (
        page.get_by_label("Instrument").evaluate("(select) => getComputedStyle(select).textOverflow")
        == "ellipsis"
    )


def test_events_and_open_streams(server: Server, session: str, open_page: OpenPage) -> None:
    page = on_phone(open_page, server, session)
    page.goto("/settings/events")
    expect(page.locator("time")).to_have_count(3)
    assert broken(page, "time") == []
    terminal = page.context.new_page()
    terminal.goto("/terminal")
    expect(terminal.locator("#connection")).to_have_attribute("data-status", re.compile("live|partial|stale"))
    page.goto("/settings/streams")
    expect(page.get_by_text("/ws/market", exact=True)).to_be_visible()
    assert broken(page, "time, .stream dt") == []
    aligned = "(all) => all.map((each) => getComputedStyle(each).textAlign)"
    assert set(page.locator(".stream dd").evaluate_all(aligned)) == {"right"}
    terminal.close()


def test_foot_of_the_front_page(server: Server, anna: User, open_page: OpenPage) -> None:
    page = on_phone(open_page, server)
    page.goto("/about")
    expect(page.locator("#board-state")).to_have_text("Live")
    assert broken(page, ".live-foot, .live-foot > *") == []
