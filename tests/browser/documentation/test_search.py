"""What the search of the documentation finds, and in which order."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage

# Each mark, and what stands before it.
MARKS = """
() => [...document.querySelectorAll("#found mark")]
  .map((mark) => [mark.previousSibling?.textContent ?? "", mark.textContent])
"""


def search(open_page: OpenPage, words: str) -> Page:
    page = open_page("/docs", viewport={"width": 1440, "height": 900})
    page.keyboard.press("/")
    page.get_by_role("combobox").fill(words)
    expect(page.get_by_role("option").first).to_be_visible()
    return page


def titles(page: Page) -> list[str]:
    return page.locator("#found strong").all_text_contents()


FIRST = [
    ("authentication", "/docs/api#conventions"),
    ("bearer token", "/docs/api#conventions"),
    ("pagination", "/docs/api#pagination"),
    ("cursor", "/docs/api#pagination"),
    ("cursors", "/docs/api#pagination"),
    ("CORS", "/docs/api#browsers"),
    ("webhook", "/docs/api#conventions"),
    ("idempotency", "/docs/api#conventions"),
    ("postman", "/docs/api#endpoints"),
    ("openapi", "/docs/api#endpoints"),
    ("rate limit", "/docs/api#limits"),
    ("error codes", "/docs/api/errors"),
    ("sdk", "/docs/clients"),
    ("python", "/docs/clients"),
    ("typescript", "/docs/clients"),
    ("sandbox", "/docs/guides/start#run-the-demo"),
    ("historical data", "/docs/api/getHistory"),
    ("timeframe", "/docs/api/getHistory"),
    ("ohlc", "/docs/api/getHistory"),
    ("instruments", "/docs/api/listSymbols"),
    ("listSignals", "/docs/api/listSignals"),
    ("getQuote", "/docs/api/getQuote"),
    ("getArchiveFile", "/docs/api/getArchiveFile"),
    ("websocket auth", "/docs/streams#connect"),
    ("websocket errors", "/docs/streams/errors"),
    ("reconnect", "/docs/streams#go-on"),
    ("heartbeat", "/docs/streams/messages#heartbeat"),
    ("symbol_not_found", "/docs/api/errors"),
    ("doctor", "/docs/operate/doctor"),
    ("docker", "/docs/operate/install"),
    ("backup", "/docs/operate/backup"),
    ("unauthorized", "/docs/api/errors"),
    ("pricing", "/pricing"),
    ("keep-alive", "/docs/streams/messages#heartbeat"),
    # A page that is called so, and then questions with small words that need not be there.
    ("errors", "/docs/api/errors"),
    ("glossary", "/docs/glossary"),
    ("get history", "/docs/api/getHistory"),
    ("How do I delete my account?", "/docs/operate/accounts#delete-the-account"),
    ("reconnect after 4429", "/docs/streams/errors"),
    ("websocket close code 4429", "/docs/streams/errors"),
    ("how it is computed", "/docs/computed"),
]
"""What readers type, and the page that answers it."""


@pytest.mark.also_on("firefox")
def test_page_that_answers_comes_first(open_page: OpenPage) -> None:
    page = search(open_page, "quote")
    found = {}
    for words, _ in FIRST:
        page.get_by_role("combobox").fill(words)
        found[words] = (addresses(page) or [""])[0]
    assert found == dict(FIRST)


def test_words_are_not_found_within_others(open_page: OpenPage) -> None:
    page = search(open_page, "rate limit")
    within = [f"{before[-10:]}[{word}]" for before, word in page.evaluate(MARKS) if before[-1:].isalpha()]
    assert page.evaluate(MARKS)
    assert within == []


def test_plural_finds_the_word(open_page: OpenPage) -> None:
    page = search(open_page, "quote")
    for plural, word in (("timestamps", "timestamp"), ("retries", "retry")):
        page.get_by_role("combobox").fill(plural)
        assert {text.lower() for _, text in page.evaluate(MARKS)} == {word}
        expect(page.get_by_role("status")).to_be_hidden()


def test_part_of_a_word_is_found_if_nothing_else_is(open_page: OpenPage) -> None:
    page = search(open_page, "bsorption")
    expect(page.get_by_role("option").first).to_contain_text("bsorption")


def test_message_is_titled_once(open_page: OpenPage) -> None:
    page = search(open_page, "error")
    assert "Error" in titles(page)
    assert "Error error" not in titles(page)


def test_what_is_left_out_has_an_ellipsis(open_page: OpenPage) -> None:
    page = search(open_page, "pepper")
    texts = page.locator("#found p").all_text_contents()
    assert texts
    assert all(text.endswith((".", ":", "…", ")", "?", "!")) for text in texts if len(text) > 200)
    assert any(text.startswith("… ") for text in texts)


def addresses(page: Page) -> list[str]:
    found: list[str] = page.get_by_role("option").evaluate_all(
        "(rows) => rows.map((row) => row.dataset.address)"
    )
    return found


def test_websocket_finds_the_streams_first(open_page: OpenPage) -> None:
    found = addresses(search(open_page, "websocket"))
    assert found[0] == "/docs/streams"
    assert all(address.startswith("/docs/streams") for address in found[:5])


def test_what_has_most_of_the_words_is_found(open_page: OpenPage) -> None:
    page = search(open_page, "zebra slow_consumer close")
    assert addresses(page)[0] == "/docs/streams/errors"
    expect(page.get_by_role("status")).to_have_text("Nothing matches every word. These come closest.")
    page.get_by_role("combobox").fill("slow_consumer close")
    expect(page.get_by_role("status")).to_be_hidden()
