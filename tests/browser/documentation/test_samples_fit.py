"""Samples and tables are shown whole where a window has the room, and where it has not, a shade says so."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import OpenPage
from tests.client import Server
from tests.factories import make_instrument, make_signal, put_quote

OWN = ["/docs", "/docs/clients", "/docs/without-client", "/docs/streams"]
STREAMS = [f"/docs/streams/{name}" for name in ("market", "orderflow", "candles", "signals", "news")]
ON_A_PHONE = ["/docs", "/docs/api/getSignalProof", "/docs/api/errors", "/docs/api", "/docs/streams/errors"]
CUT = """
(parts) => ["shell", "python", "javascript"].flatMap((language) => {
  document.documentElement.dataset.language = language;
  return [...document.querySelectorAll(parts)]
    .filter((part) => part.clientWidth && part.scrollWidth > part.clientWidth + 1)
    .map((part) => `${language}: ${(part.id || part.textContent).trim().slice(0, 40)}`);
})
"""
UNSAID = """
() => [...document.querySelectorAll(".doc *")]
  .filter((part) => part.clientWidth && part.scrollWidth > part.clientWidth + 1)
  .filter((part) => getComputedStyle(part).overflowX !== "visible")
  .filter((part) => !part.matches("input, select, textarea, .unseen"))
  .filter((part) => getComputedStyle(part).overflowX !== "auto"
    || !getComputedStyle(part).backgroundAttachment.includes("local"))
  .map((part) => `${part.tagName} ${part.className} ${part.textContent.trim().slice(0, 40)}`)
"""


@pytest.fixture
def quoted(server: Server) -> None:
    make_instrument("EURUSD")
    put_quote("EURUSD")
    make_signal()


def cut(page: Page, paths: list[str], parts: str) -> list[str]:
    found = []
    for path in paths:
        page.goto(path)
        found += [f"{path} {each}" for each in page.evaluate(CUT, parts)]
    return found


# Of what scrolls, where no pointer hovers and the button is always there.
COVERED = """
() => ["python", "javascript"].flatMap((language) => {
  document.documentElement.dataset.language = language;
  return [...document.querySelectorAll(".code:not(.wraps, [data-language=shell])")]
    .map((figure) => [figure.querySelector("code"), figure.querySelector(".copy")])
    .filter(([code, copy]) => copy?.checkVisibility())
    .map(([code, copy]) => {
      const isClear = copy.getBoundingClientRect().bottom <= code.getBoundingClientRect().top + 1;
      return `${isClear ? "clear" : "covered"}: ${language} ${code.textContent.slice(0, 30)}`;
    });
})
"""


def test_samples_are_shown_whole_in_an_ordinary_window(quoted: None, open_page: OpenPage) -> None:
    page = open_page("/docs/api/getQuote", viewport={"width": 1440, "height": 900})
    operations = page.evaluate(
        "[...document.querySelectorAll('.docs-contents a')].map((link) => link.pathname)"
        ".filter((path) => path.startsWith('/docs/api/'))"
    )
    assert len(operations) > 15
    assert cut(page, [*OWN, *STREAMS, *operations], ".doc pre") == []


@pytest.mark.parametrize("path", ["/docs/api/getQuote", "/docs/clients"])
def test_copy_button_covers_no_code_that_scrolls(quoted: None, open_page: OpenPage, path: str) -> None:
    page = open_page(path, viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
    page.locator(".copy").first.wait_for(state="attached")
    found = page.evaluate(COVERED)
    assert found
    assert [each for each in found if each.startswith("covered")] == []


def test_what_a_phone_cannot_show_whole_is_shaded(quoted: None, open_page: OpenPage) -> None:
    page = open_page("/docs", viewport={"width": 360, "height": 740})
    assert cut(page, ["/docs"], ".doc pre"), "nothing is too wide: this test shows nothing"
    for path in ON_A_PHONE:
        page.goto(path)
        assert page.evaluate(UNSAID) == []
        assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_fields_stand_one_below_the_other_on_a_phone(quoted: None, open_page: OpenPage) -> None:
    page = open_page("/docs/api/getSignalProof", viewport={"width": 360, "height": 740})
    assert cut(page, ["/docs/api/getSignalProof", "/docs/api/headers"], ".doc .scroll") == []


def test_limits_fit_a_phone(quoted: None, open_page: OpenPage) -> None:
    page = open_page("/docs", viewport={"width": 360, "height": 740})
    assert cut(page, ["/docs", "/docs/api"], ".doc .scroll, .doc :is(th, td)") == []
    assert page.locator(".doc table.short").count() == 1


WRAPPED_FIGURES = """
() => [...document.querySelectorAll(".doc .figures tbody td:not(:first-child)")].filter((cell) => {
  const range = document.createRange();
  range.selectNodeContents(cell);
  return new Set([...range.getClientRects()].map((part) => Math.round(part.bottom / 8))).size > 1;
}).map((cell) => cell.textContent)
"""
PLACES = """
() => [...document.querySelectorAll(".doc .scroll:has(.figures)")].map((box) => {
  box.scrollLeft = 120;
  const cell = box.querySelector("tbody td");
  return [box.scrollLeft, cell.getBoundingClientRect().left - box.getBoundingClientRect().left];
})
"""


def test_figures_stay_in_one_line_beside_the_name_of_their_row(open_page: OpenPage) -> None:
    page = open_page("/docs/performance", viewport={"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    assert page.evaluate(WRAPPED_FIGURES) == []
    places = page.evaluate(PLACES)
    assert len(places) > 10
    assert {left for moved, left in places if moved} == {0}
