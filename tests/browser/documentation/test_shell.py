"""The frame of the documentation in Chromium: contents, search, samples in the reader's language."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage
from tests.browser.looks import widths

DESKTOP = {"width": 1440, "height": 900}
PHONE = {"width": 360, "height": 740}


def search(page: Page, words: str) -> None:
    page.keyboard.press("/")
    page.get_by_role("combobox").fill(words)


def test_search_finds_an_endpoint_by_its_parameter(open_page: OpenPage) -> None:
    page = open_page("/docs", viewport=DESKTOP)
    search(page, "closed_only")
    expect(page.get_by_role("option").first).to_contain_text("Get market")
    page.keyboard.press("Enter")
    page.wait_for_url("**/docs/api/getMarket")


def test_search_is_walked_by_keyboard(open_page: OpenPage) -> None:
    page = open_page("/docs", viewport=DESKTOP)
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill("resume")
    chosen = page.locator('[role="option"][aria-selected="true"]')
    expect(chosen).to_have_id("found-0")
    page.keyboard.press("ArrowDown")
    expect(chosen).to_have_id("found-1")
    expect(page.get_by_role("combobox")).to_have_attribute("aria-activedescendant", "found-1")
    page.keyboard.press("Escape")
    expect(page.locator("#find")).not_to_be_visible()


def test_search_works_without_a_connection(open_page: OpenPage) -> None:
    page = open_page("/docs", viewport=DESKTOP)
    search(page, "limits")
    expect(page.get_by_role("option").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#find")).not_to_be_visible()
    page.context.set_offline(True)
    search(page, "absorption")
    expect(page.get_by_role("option").first).to_be_visible()


# Until the page is drawn again, the field that was closed has the focus.
PRESSED = """(keys) => keys.map((key) => {
    document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    return document.getElementById("find").open;
})"""


def test_search_opens_again_before_a_frame_is_drawn(open_page: OpenPage) -> None:
    page = open_page("/docs", viewport=DESKTOP)
    assert page.evaluate(PRESSED, ["/", "Escape", "/"]) == [True, False, True]


def test_search_says_that_nothing_matches(open_page: OpenPage) -> None:
    page = open_page("/docs", viewport=DESKTOP)
    search(page, "zebra crossing")
    expect(page.get_by_role("status")).to_have_text("Nothing matches “zebra crossing”.")


def test_slash_in_a_field_is_a_slash(open_page: OpenPage) -> None:
    page = open_page("/docs/api/getArchiveFile", viewport=DESKTOP)
    page.locator("input[name=path]").fill("ticks")
    page.keyboard.press("/")
    expect(page.locator("input[name=path]")).to_have_value("ticks/")
    expect(page.locator("#find")).not_to_be_visible()


def test_language_is_remembered_on_every_page(open_page: OpenPage) -> None:
    page = open_page("/docs", viewport=DESKTOP)
    expect(page.locator("#quote-python")).to_be_visible()
    page.locator("#quote-javascript-tab").click()
    expect(page.locator("#quote-python")).not_to_be_visible()
    expect(page.locator("#stream-javascript")).to_be_visible()

    page.goto("/docs/api/getQuote")
    expect(page.locator("#request-javascript")).to_be_visible()
    expect(page.locator("#request-javascript-tab")).to_have_attribute("aria-selected", "true")
    assert page.locator(".samples pre:visible").count() == 1


def test_choosing_a_language_moves_nothing_under_the_pointer(open_page: OpenPage) -> None:
    page = open_page("/docs", viewport=DESKTOP)
    tab = page.locator("#history-shell-tab")
    tab.scroll_into_view_if_needed()
    before = tab.bounding_box()
    tab.click()
    after = tab.bounding_box()
    assert before is not None
    assert after is not None
    # Browsers scroll by whole pixels.
    assert abs(after["y"] - before["y"]) <= 1


def test_tabs_are_walked_with_arrows(open_page: OpenPage) -> None:
    page = open_page("/docs", viewport=DESKTOP)
    page.locator("#quote-python-tab").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#quote-javascript-tab")).to_be_focused()
    expect(page.locator("#quote-javascript")).to_be_visible()


def test_sample_is_copied_without_its_colours(open_page: OpenPage) -> None:
    page = open_page("/docs", viewport=DESKTOP)
    figure = page.locator("#quote-python-panel")
    figure.hover()
    figure.get_by_role("button", name="Copy").click()
    expect(figure.get_by_role("button", name="Copied")).to_be_visible()
    text = page.evaluate("navigator.clipboard.readText()")
    assert text == page.locator("#quote-python").text_content()
    assert "tickwire.quote(" in text


def test_sample_is_copied_where_the_browser_offers_no_clipboard(open_page: OpenPage) -> None:
    page = open_page("/docs", script="delete Navigator.prototype.clipboard;", viewport=DESKTOP)
    figure = page.locator("#quote-python-panel")
    figure.hover()
    figure.get_by_role("button", name="Copy").click()
    expect(figure.get_by_role("button", name="Copied")).to_be_visible()


def test_contents_are_a_drawer_on_a_phone(open_page: OpenPage) -> None:
    page = open_page("/docs/signals", viewport=PHONE)
    contents = page.locator("#docs-contents")
    expect(contents).not_to_be_visible()
    page.get_by_role("button", name="Contents").click()
    expect(contents).to_be_visible()
    box = contents.bounding_box()
    assert box is not None
    assert (box["x"], box["y"], box["height"]) == (0, 0, 740)
    assert box["width"] < 360
    contents.get_by_role("link", name="Trade signals").click()
    expect(contents).not_to_be_visible()


def test_nothing_overlaps_beside_the_page(open_page: OpenPage) -> None:
    page = open_page("/docs/signals")
    for width in widths(page, 1024, 1440, 2560):
        contents = page.locator("#docs-contents").bounding_box()
        article = page.locator("article").bounding_box()
        aside = page.locator(".on-page").bounding_box()
        brand = page.locator(".brand").bounding_box()

        assert contents is not None
        assert article is not None
        assert brand is not None
        assert contents["x"] + contents["width"] <= article["x"]
        # The head begins where the contents begin.
        assert abs(brand["x"] - page.locator(".docs-search").first.bounding_box()["x"]) <= 1  # type: ignore[index]
        if width >= 1440:
            assert aside is not None
            assert article["x"] + article["width"] <= aside["x"]
            assert aside["x"] + aside["width"] <= width


def test_heading_that_is_read_is_marked(open_page: OpenPage) -> None:
    page = open_page("/docs/signals", viewport=DESKTOP)
    page.get_by_role("navigation", name="On this page").get_by_role("link", name="Ledger").click()
    expect(page.locator(".on-page [aria-current]")).to_have_text("Ledger")


def test_without_scripts_all_samples_are_read(open_page: OpenPage) -> None:
    page = open_page("/docs", viewport=DESKTOP, java_script_enabled=False)
    for language in ("shell", "python", "javascript"):
        expect(page.locator(f"#quote-{language}")).to_be_visible()
