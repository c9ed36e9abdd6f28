"""Light, dark, or as the system has it: chosen in the head of every page, and kept."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from .conftest import OpenPage

LIGHT, DARK = "rgb(245, 247, 249)", "rgb(13, 18, 23)"


def ground(page: Page) -> str:
    found: str = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return found


@pytest.mark.parametrize(("system", "first"), [("light", LIGHT), ("dark", DARK)])
def test_page_follows_the_system_until_a_theme_is_chosen(
    open_page: OpenPage, system: str, first: str
) -> None:
    page = open_page("/docs", color_scheme=system)
    assert ground(page) == first
    switch = page.get_by_role("button", name="Theme:")
    grounds = []
    for theme in ("light", "dark", "system"):
        switch.click()
        expect(switch).to_have_attribute("aria-label", f"Theme: {theme}")
        grounds.append(ground(page))
    assert grounds == [LIGHT, DARK, first]


@pytest.mark.also_on("firefox")
def test_chosen_theme_stays_and_is_there_before_the_first_paint(open_page: OpenPage) -> None:
    page = open_page("/docs", color_scheme="light")
    switch = page.get_by_role("button", name="Theme:")
    switch.click()
    switch.click()
    page.goto("/status", wait_until="commit")
    page.wait_for_selector("body", state="attached")
    assert page.locator("html").get_attribute("data-theme") == "dark"
    assert ground(page) == DARK


def test_theme_chosen_in_one_tab_holds_in_the_other(open_page: OpenPage) -> None:
    page = open_page("/docs", color_scheme="light")
    other = page.context.new_page()
    other.goto("/status")
    switch = page.get_by_role("button", name="Theme:")
    switch.click()
    switch.click()
    expect(other.locator("html")).to_have_attribute("data-theme", "dark")


def test_figures_are_equally_wide(open_page: OpenPage) -> None:
    """So that prices do not tremble: Inter is there, with its tabular figures."""
    page = open_page("/docs")
    widths = page.evaluate(
        """async () => {
          await document.fonts.load("16px Inter");
          const line = document.body.appendChild(document.createElement("span"));
          line.className = "num";
          const width = (text) => { line.textContent = text; return line.getBoundingClientRect().width; };
          const found = [document.fonts.check("16px Inter"), width("1111111111"), width("8888888888")];
          line.className = "";
          found.push(width("1111111111"));
          line.remove();
          return found;
        }"""
    )
    loaded, ones, eights, proportional = widths
    assert loaded
    assert ones == eights
    assert proportional < ones


def test_nothing_moves_when_the_switch_appears(open_page: OpenPage) -> None:
    page = open_page("/status", viewport={"width": 1440, "height": 900})
    join = page.get_by_role("link", name="Sign up")
    after = join.bounding_box()
    page.locator("#theme").evaluate("(button) => { button.hidden = true; }")
    assert join.bounding_box() == after
