"""Real browsers on the real server. Whatever a test does, no page may break its policy or leave its host."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.conf import settings as configured
from django.db import connection
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    Response,
    expect,
    sync_playwright,
)

from accounts.models import User
from market.models import LastQuote
from tests.client import Server
from tests.contract.streams.ticker import Ticker, ticking
from tests.factories import make_instrument, make_news, make_user
from tests.patience import PATIENCE_S, wait_until
from tests.staff import staff_client

from .browsers import LAUNCH

OpenPage = Callable[..., Page]
Launched = Callable[[str], AbstractContextManager[Browser]]
PATIENCE_MS = PATIENCE_S * 1000
CLIPBOARD = ["clipboard-read", "clipboard-write"]
SYMBOLS = ("BTCUSD", "EURUSD")
# Reported by the page itself, because not every violation reaches the console.
REPORT_VIOLATIONS = """
addEventListener("securitypolicyviolation",
  (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`));
"""

# Playwright's own five seconds are a claim about the machine.
expect.set_options(timeout=PATIENCE_MS)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "also_on(*browsers): runs in the oldest Chromium or in Firefox, too")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    others = [name for mark in metafunc.definition.iter_markers("also_on") for name in mark.args]
    if others:
        metafunc.parametrize("browser", ["newest", *others], indirect=True)


@pytest.fixture(scope="session")
def launched() -> Iterator[Launched]:
    """One of each kind for all tests here. While Playwright works, this thread has an event loop, and
    may not use the ORM; between tests it has none."""
    with sync_playwright() as playwright:
        loop = asyncio.get_running_loop()

        @cache
        def launch(kind: str) -> Browser:
            return LAUNCH[kind](playwright)

        @contextmanager
        def working(kind: str) -> Iterator[Browser]:
            asyncio._set_running_loop(loop)
            try:
                yield launch(kind)
            finally:
                asyncio._set_running_loop(None)

        asyncio._set_running_loop(None)
        yield working
        asyncio._set_running_loop(loop)


@pytest.fixture
def browser(request: pytest.FixtureRequest, launched: Launched) -> Iterator[Browser]:
    """For one test, which leaves no page behind."""
    with launched(getattr(request, "param", "newest")) as browser:
        yield browser
        for context in browser.contexts:
            context.close()


@pytest.fixture
def open_page(server: Server, browser: Browser) -> Iterator[OpenPage]:
    """Opens pages in a fresh profile each; takes Playwright's options of a context."""
    problems: list[str] = []
    permissions = CLIPBOARD if browser.browser_type.name == "chromium" else []

    def open_one(
        path: str = "/", script: str = "", *, session: str = "", address: str = server.url, **options: Any
    ) -> Page:
        context = browser.new_context(base_url=address, permissions=permissions, **options)
        context.set_default_timeout(PATIENCE_MS)
        if session:
            log_in(context, session, address)
        context.add_init_script(REPORT_VIOLATIONS + script)
        page = context.new_page()
        watch(page, urlsplit(address).netloc, problems)
        page.goto(path)
        return page

    yield open_one
    assert problems == []


def session_of(user: User) -> str:
    """Before the browser: while Playwright runs, this thread may not use the ORM."""
    return str(staff_client(user).cookies[configured.SESSION_COOKIE_NAME].value)


def log_in(context: BrowserContext, session: str, address: str) -> None:
    context.add_cookies([{"name": configured.SESSION_COOKIE_NAME, "value": session, "url": address}])


@pytest.fixture
def publisher(settings: Any, server: Server) -> User:
    settings.DEMO = settings.PUBLIC_TERMINAL = True
    for symbol in SYMBOLS:
        make_instrument(symbol)
    make_news("Bitcoin steadies", category="crypto")
    return make_user("marta")


@pytest.fixture
def ticker(publisher: User, server: Server) -> Iterator[Ticker]:
    with ticking(server) as made:
        for symbol in SYMBOLS:
            made(symbol)
        wait_for_quotes()
        yield made


def wait_for_quotes() -> None:
    """Until its quote is stored, an instrument answers the history of the kind that it waits for: none."""
    wait_until(lambda: LastQuote.objects.filter(instrument__symbol__in=SYMBOLS).count() == len(SYMBOLS))


def beside(act: Callable[[], Any]) -> Any:
    """In a thread that may use the ORM: this one belongs to the browser."""

    def run() -> Any:
        try:
            return act()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as threads:
        return threads.submit(run).result()


def look_until(page: Page, is_so: Callable[[], object]) -> None:
    """For what Playwright tells only while one waits for it."""

    def looked() -> object:
        page.wait_for_timeout(1)
        return is_so()

    wait_until(looked)


def watch(page: Page, host: str, problems: list[str]) -> None:
    page.on("console", lambda said: note_error(said, problems))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda asked: note_other_host(asked, host, problems))
    page.on("response", lambda answer: note_missing_part(answer, problems))


def note_error(said: ConsoleMessage, problems: list[str]) -> None:
    # Chromium also reports the status of a page that refuses something, which a test may have asked for.
    if said.type == "error" and not said.text.startswith("Failed to load resource: the server responded"):
        problems.append(said.text)


def note_other_host(asked: Request, host: str, problems: list[str]) -> None:
    if urlsplit(asked.url).netloc != host:
        problems.append(asked.url)


def note_missing_part(answer: Response, problems: list[str]) -> None:
    # With a token whose session has just ended a page is refused once, and asks again.
    is_ended = answer.status == 401 and urlsplit(answer.url).path.startswith("/api/")
    if answer.status >= 400 and not is_ended and answer.request.resource_type != "document":
        problems.append(f"{answer.status} {answer.url}")
