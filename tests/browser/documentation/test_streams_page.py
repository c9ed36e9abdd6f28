"""The streams' page works from this host alone; `open_page` fails for broken policies and foreign hosts."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenPage
from tests.browser.looks import widths
from tests.client import Api, Server
from tests.factories import make_instrument

HEAR_ONE = "new Promise((resolve) => { console.log = resolve; %s })"


@pytest.fixture
def eurusd(server: Server) -> None:
    make_instrument("EURUSD")


def test_sample_subscribes_as_it_stands(eurusd: None, api: Api, open_page: OpenPage) -> None:
    page = open_page("/docs/without-client")
    sample = page.locator("#plain-stream-javascript").text_content() or ""

    heard = page.evaluate(HEAR_ONE % sample.replace("process.env.TICKWIRE_KEY", repr(api.key)))

    assert len(sample.strip().splitlines()) <= 10
    assert (heard["type"], heard["symbols"]) == ("subscribed", ["EURUSD"])


def test_console_says_where_it_stands(eurusd: None, api: Api, open_page: OpenPage) -> None:
    page = open_page("/docs/streams")
    state = page.locator("#console-state")
    page.fill("#console-key", api.key)
    page.click("#console-connect")
    expect(state).to_contain_text("A subscribe with a key is expected")
    page.fill("#console-message", '{"action": "subscribe", "api_key": "KEY", "symbols": ["EURUSD"]}')
    page.click("#console-send")
    expect(state).to_have_text("Subscribed.")
    page.click("#console-close")
    expect(state).to_have_text("Closed with 1000.")


# What stands between two commas, and on how many lines.
LINES_OF_PARTS = """
(item) => [...item.childNodes].filter((each) => each.nodeType === 3).map((each) => {
  const range = document.createRange();
  range.selectNodeContents(each);
  return [each.data, range.getClientRects().length];
})
"""


def test_frames_break_after_commas(eurusd: None, api: Api, open_page: OpenPage) -> None:
    page = open_page("/docs/streams", viewport={"width": 360, "height": 800})
    page.fill("#console-key", api.key)
    page.click("#console-connect")
    page.fill("#console-message", '{"action":"subscribe","api_key":"KEY","symbols":["EURUSD"]}')
    page.click("#console-send")
    expect(page.locator("#console-state")).to_have_text("Subscribed.")
    reply = page.locator("#console-frames li", has_text="subscribed").first
    parts = reply.evaluate(LINES_OF_PARTS)
    assert len(parts) > 2
    assert [part for part, lines in parts if lines != 1] == []


def test_page_is_no_wider_than_the_window(open_page: OpenPage) -> None:
    page = open_page("/docs/streams", color_scheme="dark")
    for width in widths(page, 360, 1100):
        assert page.evaluate("document.documentElement.scrollWidth") <= width
