"""The documentation in Chromium: the console speaks to the service, and no page breaks axe's rules."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage
from tests.browser.looks import faults
from tests.client import Api, Server
from tests.factories import make_instrument

PAGES = {
    "docs": "/docs",
    "docs-computed": "/docs/computed",
    "docs-api": "/docs/api",
    "docs-errors": "/docs/api/errors",
    "docs-market": "/docs/api/getMarket",
    "docs-streams": "/docs/streams",
    "docs-candles": "/docs/streams/candles",
    "docs-document": "/docs/operate/redis-and-postgresql",
    "docs-changelog": "/docs/changelog",
    "status": "/status",
}


@pytest.fixture
def btcusd(server: Server) -> None:
    make_instrument("BTCUSD")


@pytest.fixture
def demo(btcusd: None, settings: Any) -> None:
    settings.DEMO = settings.PUBLIC_TERMINAL = True


def say(page: Page, example: str) -> Any:
    """What the console shows then, newest first."""
    page.get_by_role("button", name=example, exact=True).click()
    page.get_by_role("button", name="Send", exact=True).click()
    return page.locator("#console-frames li").first


def connect(page: Page) -> None:
    page.get_by_role("button", name="Connect").click()
    expect(page.locator("#console-state")).to_contain_text("Connected")


def test_console_needs_no_key_in_the_demo(demo: None, open_page: OpenPage) -> None:
    page = open_page("/docs/streams")
    connect(page)

    expect(say(page, "Subscribe")).to_contain_text('"type":"subscribed"')
    expect(say(page, "Ping")).to_contain_text('"type":"pong"')
    expect(say(page, "An invalid message")).to_contain_text('"code":"invalid_message"')


def test_console_takes_a_key_and_never_shows_it(btcusd: None, api: Api, open_page: OpenPage) -> None:
    page = open_page("/docs/streams")
    connect(page)
    page.get_by_label("Key").fill(api.key)

    expect(say(page, "Subscribe")).to_contain_text('"type":"subscribed"')
    assert api.key not in page.content()


def test_console_shows_refusal_and_close_code(btcusd: None, open_page: OpenPage) -> None:
    page = open_page("/docs/streams")
    connect(page)
    page.get_by_label("Key").fill("wrong")

    expect(say(page, "Subscribe")).to_contain_text("closed with 4401")
    expect(page.locator("#console-frames .error")).to_contain_text("invalid_api_key")
    expect(page.locator("#console-state")).to_have_text("Closed with 4401.")


def test_pages_fit_every_window_and_break_no_rule_of_access(btcusd: None, open_page: OpenPage) -> None:
    page = open_page(PAGES["docs"])
    found = {}

    for name, path in PAGES.items():
        page.goto(path)
        found[name] = faults(page)

    assert {name: wrong for name, wrong in found.items() if wrong} == {}
