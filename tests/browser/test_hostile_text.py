"""Sixty hostile texts on every page that shows them: nothing of them runs, and none becomes an element."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from django.conf import settings as configured
from playwright.sync_api import Browser, Page, expect

from accounts.models import ApiKey, User
from instruments.models import Instrument
from news.models import NewsItem
from signals_feed.models import Signal
from tests.accounts.back_office.office import Office, list_of
from tests.client import Server
from tests.factories import make_user, put_quote
from tests.hostile.rows import FIRST_SYMBOL, edit_pages, type_everywhere
from tests.hostile.texts import HOSTILE_ELEMENTS, HTML, SCRIPTS
from tests.staff import staff_client

from .conftest import OpenPage

NOTE = "window.ran = []; window.executed = (number) => window.ran.push(number);"
UNESCAPED = "texts => texts.forEach((text) => document.body.insertAdjacentHTML('beforeend', text))"
OF_OWNERS = ("/settings/keys", "/settings/events")
MODELS = (NewsItem, Instrument, Signal, ApiKey, User)


class Pages:
    """Whom a browser is logged in as, and what each of them opens."""

    def __init__(self, server: Server, office: Office) -> None:
        owners = type_everywhere(office).owners
        put_quote(FIRST_SYMBOL)
        self.url = server.url
        self.staff = session_of(office.user)
        self.owners = [session_of(owner) for owner in owners]
        self.of_staff = [
            *("/", "/admin/", "/admin/news/queue/", "/admin/admin/logentry/?all="),
            *(f"{list_of(model)}?all=" for model in MODELS),
            *edit_pages(),
        ]
        of_each = [f"/publishers/{quote(text)}" for text in (*HTML, *SCRIPTS) if "/" not in text]
        self.publishers = ["/publishers", "/ledger", *of_each]


def session_of(user: User) -> str:
    return str(staff_client(user).cookies[configured.SESSION_COOKIE_NAME].value)


@pytest.fixture
def pages(server: Server, settings: Any) -> Pages:
    """Before the browser: while Playwright runs, this thread may not use the ORM."""
    settings.DEMO = settings.PUBLIC_TERMINAL = True
    return Pages(server, Office(make_user("boss", is_staff=True, is_superuser=True)))


def visit(page: Page, pages: Pages, session: str, path: str) -> list[Any]:
    """What of the texts ran or became an element."""
    cookie = {"name": configured.SESSION_COOKIE_NAME, "value": session, "url": pages.url}
    page.context.add_cookies([cookie])  # type: ignore[list-item]
    page.goto(path)
    return found_on(page)


def found_on(page: Page) -> list[Any]:
    elements: list[Any] = page.evaluate(
        "selector => [...document.querySelectorAll(selector)].map((one) => one.outerHTML)", HOSTILE_ELEMENTS
    )
    return [*elements, *page.evaluate("window.ran")]


def assert_terminal_shows_text(page: Page) -> None:
    page.goto("/")
    for text in ("<img src=x data-hostile onerror=executed(2)>", '";executed(12);//'):
        expect(page.locator("#news li", has_text=text)).to_have_count(1)
        expect(page.locator("[data-part=user]", has_text=text)).to_have_count(1)
    assert found_on(page) == []


def test_nothing_of_what_is_typed_runs_in_a_browser(pages: Pages, open_page: OpenPage) -> None:
    page = open_page("/healthz", script=NOTE)
    found = {path: visit(page, pages, pages.staff, path) for path in (*pages.of_staff, *pages.publishers)}
    for session in pages.owners:
        found |= {f"{path} {session}": visit(page, pages, session, path) for path in OF_OWNERS}
    assert {path: texts for path, texts in found.items() if texts} == {}
    assert_terminal_shows_text(page)


def test_what_is_not_escaped_is_seen(server: Server, browser: Browser) -> None:
    """Without the policy, which would hold it up, and without a watch over what is asked for."""
    page = browser.new_page(bypass_csp=True)
    page.add_init_script(NOTE)
    page.goto(f"{server.url}/docs")
    page.evaluate(UNESCAPED, [text for text in HTML if "base" not in text])
    page.wait_for_function("window.ran.includes(2)")
    assert len(found_on(page)) > len(HTML) // 2
