"""The market status refreshes itself, under the back office's policy, without getting in the reader's way."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.client import Server
from tests.factories import make_instrument, make_user, put_quote
from tests.staff import staff_client

from .conftest import OpenPage

PAGE = "/admin/market/status/"
EVERY_MS = 3000


@pytest.fixture
def session(server: Server) -> str:
    """Before the browser: while Playwright runs, this thread may not use the ORM."""
    make_instrument("EURUSD")
    put_quote(bid=1.0841)
    client = staff_client(make_user(is_staff=True, is_superuser=True))
    return str(client.cookies["sessionid"].value)


def assert_laid_out(page: Page) -> None:
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    row = page.get_by_role("row").filter(has_text="EURUSD").bounding_box()
    # On a phone an instrument takes two lines.
    assert row is not None
    assert row["height"] < 64
    expect(page.get_by_text("1.08410")).to_be_visible()
    for width in (704, 768, 1024):
        page.set_viewport_size({"width": width, "height": 740})
        assert page.evaluate("document.documentElement.scrollWidth") == width
        row = page.get_by_role("row").filter(has_text="EURUSD").bounding_box()
        # A row of a table, and no card.
        assert row is not None
        assert row["height"] < 100
        expect(page.get_by_role("columnheader", name="Bid / ask")).to_be_visible()
        expect(page.get_by_role("columnheader", name="Delta today")).to_be_hidden()


def test_it_refreshes_itself_without_getting_in_the_readers_way(
    server: Server, session: str, open_page: OpenPage
) -> None:
    """One test of many steps, because each browser takes seconds to start."""
    page = open_page("/healthz", viewport={"width": 360, "height": 740})
    page.context.add_cookies([{"name": "sessionid", "value": session, "url": server.url}])
    page.clock.install()
    page.goto(PAGE)
    assert_laid_out(page)
    page.set_viewport_size({"width": 360, "height": 740})

    page.get_by_role("link", name="EURUSD").focus()
    put_quote(bid=1.0999)
    page.clock.run_for(EVERY_MS)
    expect(page.get_by_text("1.09990")).to_be_visible()
    expect(page.get_by_role("link", name="EURUSD")).to_be_focused()

    page.get_by_role("button", name="Pause").click()
    put_quote(bid=1.0777)
    page.clock.run_for(3 * EVERY_MS)
    expect(page.get_by_text("1.09990")).to_be_visible()
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("1.07770")).to_be_visible()

    page.evaluate("() => { window.kept = fetch; window.fetch = () => Promise.reject(new TypeError()); }")
    page.clock.run_for(EVERY_MS)
    expect(page.get_by_text("The server does not answer.")).to_be_visible()
    page.evaluate("() => { window.fetch = window.kept; }")
    page.clock.run_for(EVERY_MS)
    expect(page.get_by_text("The server does not answer.")).to_be_hidden()
