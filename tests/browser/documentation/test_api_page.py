"""The API's page works from this host alone; `open_page` fails for broken policies and foreign requests."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenPage
from tests.client import Api, Server
from tests.contract.openapi.specified import PATHS
from tests.factories import make_instrument, put_quote

SUMMARIES = ".opblock-summary-path"


@pytest.fixture
def quoted(server: Server) -> None:
    """Before the browser: while Playwright runs, this thread may not use the ORM."""
    make_instrument("EURUSD")
    put_quote("EURUSD", bid=1.0841)


def test_page_lists_every_operation(open_page: OpenPage) -> None:
    page = open_page("/docs/api")

    expect(page.locator(SUMMARIES)).to_have_count(len(PATHS))
    # Swagger UI puts a zero-width space after each slash, for line breaks.
    paths = [text.replace("\u200b", "") for text in page.locator(SUMMARIES).all_inner_texts()]
    assert "/api/market/{symbol}/quote" in paths


def test_request_with_a_pasted_key_is_answered(quoted: None, api: Api, open_page: OpenPage) -> None:
    page = open_page("/docs/api")

    page.get_by_role("button", name="Authorize").click()
    page.locator(".auth-container input").fill(api.key)
    page.locator(".auth-container button.authorize").click()
    page.locator(".btn-done").click()
    page.locator("#operations-Market-getQuote .opblock-summary").click()
    page.get_by_role("button", name="Execute").click()

    answer = page.locator(".live-responses-table .response")
    expect(answer.locator(".response-col_status")).to_have_text("200")
    expect(answer.locator(".highlight-code")).to_contain_text('"bid": 1.0841')


def test_page_is_dark_for_those_who_like_it_dark(open_page: OpenPage) -> None:
    page = open_page("/docs/api", color_scheme="dark")

    expect(page.locator("html.dark-mode .opblock").first).to_be_visible()
