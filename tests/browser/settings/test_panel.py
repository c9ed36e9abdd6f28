"""The settings panel's navigation and first steps in Chromium."""

from __future__ import annotations

import shlex
from typing import Any

import httpx
import pytest
from playwright.sync_api import Locator, expect

from accounts.models import User
from config.wiring import use_recorder
from tests.browser.conftest import OpenPage
from tests.browser.looks import widths
from tests.client import Server
from tests.factories import make_account, make_instrument, make_user, put_quote
from tests.patience import PATIENCE_S
from tests.staff import staff_client

from .test_keys_page import clipboard, issue
from .test_pages import with_session


@pytest.fixture
def session(server: Server) -> str:
    """Before the browser: while Playwright runs, this thread may not use the ORM."""
    make_instrument("EURUSD")
    put_quote("EURUSD")
    return session_of(make_account(make_user("ada")).user)


def session_of(user: User) -> str:
    return str(staff_client(user).cookies["sessionid"].value)


def box(found: Locator) -> dict[str, float]:
    at: Any = found.bounding_box()
    assert at is not None
    return {"left": at["x"], "top": at["y"], "right": at["x"] + at["width"], "bottom": at["y"] + at["height"]}


def test_navigation_stands_beside_the_page(server: Server, session: str, open_page: OpenPage) -> None:
    page = with_session(open_page("/healthz"), server, session)
    page.goto("/settings/keys")
    for width in widths(page, 896, 1440, 2560):
        navigation, content = box(page.locator("#sections")), box(page.locator("main"))
        assert navigation["right"] < content["left"]
        assert navigation["left"] == box(page.locator(".brand"))["left"]
        assert content["right"] <= width
        expect(page.locator(".sections-open")).to_be_hidden()
        tops = [box(link)["top"] for link in page.locator("#sections a").all()]
        assert tops == sorted(set(tops))


@pytest.mark.parametrize("width", [360, 768])
def test_navigation_is_a_sheet_on_small_screens(
    server: Server, session: str, open_page: OpenPage, width: int
) -> None:
    page = with_session(open_page("/healthz", viewport={"width": width, "height": 740}), server, session)
    page.goto("/settings/usage")
    sheet = page.locator("#sections")
    expect(sheet).to_be_hidden()
    page.get_by_role("button", name="Settings: Usage").click()
    expect(sheet).to_be_visible()
    at = box(sheet)
    assert (at["left"], at["right"], at["bottom"]) == (0, width, 740)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.keyboard.press("Escape")
    expect(sheet).to_be_hidden()
    page.get_by_role("button", name="Settings: Usage").click()
    sheet.get_by_role("link", name="Sessions").click()
    expect(page.get_by_role("heading", name="Sessions")).to_be_visible()
    expect(page.get_by_role("button", name="Settings: Sessions")).to_be_visible()


def test_first_steps_are_ticked_while_the_page_is_open(
    server: Server, session: str, open_page: OpenPage
) -> None:
    page = with_session(open_page("/healthz"), server, session)
    page.goto("/settings/keys")
    expect(page.get_by_text("0 of 3 steps done")).to_be_visible()
    secret = issue(page)
    page.goto("/settings/keys")
    expect(page.get_by_text("1 of 3 steps done")).to_be_visible()
    last_used = page.locator("dt", has_text="Last used").locator("xpath=following-sibling::dd")
    expect(last_used).to_have_text("never")
    page.get_by_role("button", name="Copy the request").click()
    run(clipboard(page), secret)
    server.run(use_recorder.record())
    expect(page.get_by_text("2 of 3 steps done")).to_be_visible()
    expect(last_used).to_contain_text("UTC")
    expect(page.get_by_role("button", name="Copy the request")).to_have_count(0)
    expect(page.get_by_role("button", name="Copy the stream")).to_be_visible()


def run(command: str, secret: str) -> None:
    """A curl line as a shell would read it, with the key in its variable."""
    words = shlex.split(command.replace("\\\n", "").replace("$TICKWIRE_KEY", secret))
    assert words[:2] == ["curl", "-H"]
    name, _, value = words[2].partition(": ")
    assert httpx.get(words[3], headers={name: value}, timeout=PATIENCE_S).status_code == 200
