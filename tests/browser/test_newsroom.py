"""The queue of drafts with the keyboard, without a script, and on a phone."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.client import Server
from tests.factories import make_news, make_user
from tests.staff import staff_client

from .conftest import OpenPage

PAGE = "/admin/news/queue/"
TITLES = ("Euro firms", "Gold steadies", "Bitcoin slips", "Fed holds", "Silver up", "Unscored story")


@pytest.fixture
def session(server: Server) -> str:
    """Before the browser: while Playwright runs, this thread may not use the ORM."""
    for title in TITLES:
        scored = {} if title != "Unscored story" else {"sentiment_score": None, "model": ""}
        make_news(title, status="draft", **scored)
    client = staff_client(make_user(is_staff=True, is_superuser=True))
    return str(client.cookies["sessionid"].value)


def open_queue(open_page: OpenPage, server: Server, session: str, **options: Any) -> Page:
    page = open_page("/healthz", **options)
    page.context.add_cookies([{"name": "sessionid", "value": session, "url": server.url}])
    page.goto(PAGE)
    return page


def at_hand(page: Page, title: str) -> None:
    expect(page.locator('[aria-current="true"] h2')).to_have_text(title)


def test_drafts_are_decided_with_the_keyboard(server: Server, session: str, open_page: OpenPage) -> None:
    """One test of many steps, because each browser takes seconds to start."""
    page = open_queue(open_page, server, session)
    expect(page.get_by_text("Keys", exact=True)).to_be_visible()
    at_hand(page, "Unscored story")
    score_and_publish(page)
    put_right_and_reject(page)
    publish_what_is_ticked(page)
    edit(page)
    page.evaluate("() => { window.fetch = () => Promise.reject(new TypeError()); }")
    page.keyboard.press("r")
    expect(page.get_by_text("The server does not answer.")).to_be_visible()
    expect(page.get_by_role("article")).to_have_count(2)


def score_and_publish(page: Page) -> None:
    page.keyboard.press("p")
    expect(page.get_by_text("has no sentiment score yet")).to_be_visible()
    at_hand(page, "Unscored story")
    page.keyboard.press("s")
    page.keyboard.type("-4")
    page.keyboard.press("Enter")
    field = page.get_by_label("Score", exact=True).first
    expect(field).to_have_accessible_description("A score is a number from −1 to 1, such as 0.4.")
    expect(field).to_have_value("-4")
    expect(field).to_be_focused()
    field.fill("-0.4")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Score -0.40: “Unscored story”.")).to_be_visible()
    expect(page.locator('[aria-current="true"] .status-label')).to_have_text("bearish -0.40")
    page.keyboard.press("p")
    expect(page.get_by_text("Published: “Unscored story”.")).to_be_visible()
    at_hand(page, "Silver up")


def put_right_and_reject(page: Page) -> None:
    for key, title in (("j", "Fed holds"), ("k", "Silver up"), ("j", "Fed holds")):
        page.keyboard.press(key)
        at_hand(page, title)
    page.keyboard.press("4")
    expect(page.locator('[aria-current="true"] [aria-pressed="true"]')).to_have_text("macro")
    at_hand(page, "Fed holds")
    page.keyboard.press("r")
    expect(page.get_by_text("Rejected: “Fed holds”.")).to_be_visible()
    at_hand(page, "Bitcoin slips")


def publish_what_is_ticked(page: Page) -> None:
    for key in ("x", "j", "x", "Shift+P"):
        page.keyboard.press(key)
    expect(page.get_by_text("Published: “Gold steadies”.")).to_be_visible()
    expect(page.get_by_role("article")).to_have_count(2)


def edit(page: Page) -> None:
    page.keyboard.press("e")
    page.wait_for_url("**/change/?queue")
    page.get_by_role("textbox", name="Title").fill("Silver gains")
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_url(f"**{PAGE}")
    expect(page.get_by_role("heading", name="Silver gains")).to_be_visible()


def test_it_works_without_a_script_and_on_a_phone(server: Server, session: str, open_page: OpenPage) -> None:
    page = open_queue(
        open_page, server, session, java_script_enabled=False, viewport={"width": 360, "height": 740}
    )
    expect(page.get_by_text("next, previous")).to_be_hidden()
    first = page.get_by_role("article").nth(1)
    box = first.bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= 360
    first.get_by_role("button", name="Publish").click()
    expect(page.get_by_text("Published: “Silver up”.")).to_be_visible()
    page.get_by_role("checkbox", name="Tick “Gold steadies”").check()
    page.get_by_role("checkbox", name="Tick “Euro firms”").check()
    page.locator("#queue-chosen").get_by_role("button", name="Reject").click()
    expect(page.get_by_role("article")).to_have_count(len(TITLES) - 3)


def test_keys_are_explained_where_there_is_a_keyboard(
    server: Server, session: str, open_page: OpenPage
) -> None:
    page = open_queue(open_page, server, session)
    expect(page.get_by_text("next, previous")).to_be_visible()
    phone = open_queue(
        open_page, server, session, viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True
    )
    expect(phone.get_by_text("Keys", exact=True)).to_be_visible()
    expect(phone.get_by_text("next, previous")).to_be_hidden()
