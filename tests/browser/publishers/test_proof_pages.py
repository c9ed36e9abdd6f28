"""A signal's proof, the ledger and the embedded scorecard as a visitor sees them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from signals_feed.ledger.ledger import LedgerEntry, LedgerHead
from signals_feed.models import Signal
from signals_feed.publishing.actions import cancel
from tests.browser.conftest import OpenPage
from tests.browser.looks import faults
from tests.client import Server
from tests.factories import make_instrument, make_user
from tests.signals_feed.published_signals import close_at, make_published

ENTRIES = 8


@pytest.fixture
def head(signals: list[Signal]) -> str:
    """Read before the browser runs, beside which nobody may use the ORM."""
    return LedgerHead.objects.now().hash


@pytest.fixture(autouse=True)
def signals(server: Server, settings: Any) -> list[Signal]:
    """One closed, one that staff took back, and others that are active."""
    settings.DEMO = settings.PUBLIC_TERMINAL = True
    make_instrument("EURUSD")
    anna = make_user("anna")
    made = [make_published(user=anna) for _ in range(6)]
    close_at(made[0], Decimal("1.0874"), Decimal("1.0875"))
    cancel(made[1], reason="The wrong symbol, as its publisher wrote to us right away.", by="boss")
    assert LedgerEntry.objects.count() == ENTRIES
    return made


PAGES: list[tuple[Callable[[list[Signal]], str], str, str]] = [
    (
        lambda made: f"/signals/{made[0].pk}",
        ".facts, .ticks, .steps tr, .entries li",
        "div, td, th, a, code",
    ),
    (lambda made: f"/signals/{made[1].pk}", ".facts, .ticks, .steps tr", "div, td, th"),
    (lambda made: "/ledger?at=2", ".chain-entries li", ".position, .badge, .words, a, summary"),
    (lambda made: "/publishers/anna", ".signals tr, .figures", "td, th, div"),
]


def test_pages_fit_every_screen(open_page: OpenPage, signals: list[Signal]) -> None:
    page = open_page("/healthz")
    for path, containers, parts in PAGES:
        page.goto(path(signals), wait_until="networkidle")
        assert faults(page, containers, parts) == []


def verdict_of(page: Page) -> str:
    button = page.get_by_role("button", name="Check the whole ledger")
    button.click()
    expect(button).to_be_focused()
    return page.locator("[data-part=verdict]").inner_text()


@pytest.mark.also_on("firefox")
def test_browser_verifies_the_whole_ledger_and_keeps_its_head(head: str, open_page: OpenPage) -> None:
    page = open_page("/ledger")
    assert verdict_of(page) == f"{ENTRIES} entries verified, head = {head}."
    expect(page.locator("[data-part=noted]")).to_contain_text(f"noted entry {ENTRIES}")
    day = r"\d{1,2} [A-Z][a-z]{2,3} \d{4}"
    expect(page.locator("[data-part=noted]")).to_contain_text(re.compile(f"on {day}, and will"))
    assert re.search(f"Entry {ENTRIES}, noted on {day}, is unchanged", verdict_of(page))


def tamper(page: Page, change: Callable[[dict[str, Any]], None]) -> None:
    """Somebody between the service and the browser alters an answer, or the service itself does."""

    def answer(route: Route) -> None:
        body = route.fetch().json()
        change(body)
        route.fulfill(json=body)

    page.route("**/api/signals/ledger?*", answer)


def alter_payload(body: dict[str, Any]) -> None:
    if body["items"]:
        written = json.loads(body["items"][2]["payload"])
        body["items"][2]["payload"] = json.dumps(written | {"stop_loss": "1.07"})


def leave_out(body: dict[str, Any]) -> None:
    del body["items"][4:5]


def cut_link(body: dict[str, Any]) -> None:
    if body["items"]:
        body["items"][5]["previous"] = "f" * 64


def lose_the_end(body: dict[str, Any]) -> None:
    body["items"] = [each for each in body["items"] if each["position"] < ENTRIES]


def swap_head(body: dict[str, Any]) -> None:
    body["head"]["hash"] = "f" * 64


TAMPERED = {
    "a payload": (alter_payload, "Entry 3 was altered: its hash is not that of its payload."),
    "an entry left out": (leave_out, "Entry 5 is missing: entry 6 follows."),
    "a link": (cut_link, "Entry 6 does not follow entry 5"),
    "the end": (lose_the_end, f"Entry {ENTRIES} is missing"),
    "the head": (swap_head, f"Entry {ENTRIES} is not the head that the ledger names."),
}


@pytest.mark.parametrize(("change", "words"), TAMPERED.values(), ids=TAMPERED)
def test_what_was_tampered_with_is_named(
    open_page: OpenPage, change: Callable[[dict[str, Any]], None], words: str
) -> None:
    page = open_page("/ledger")
    tamper(page, change)
    found = verdict_of(page)
    assert words in found
    assert "verified" not in found
    expect(page.locator("[data-part=verdict]")).to_have_class("verdict altered")
    expect(page.locator("[data-part=noted]")).to_be_hidden()


def test_ledger_that_was_rewritten_as_a_whole_is_seen_by_who_noted_its_head(open_page: OpenPage) -> None:
    noted = json.dumps({"position": 4, "hash": "a" * 64, "day": "2026-11-01"})
    page = open_page("/ledger", script=f"localStorage.setItem('tickwire.ledger', {json.dumps(noted)});")
    found = verdict_of(page)
    assert "Entry 4 is not the one that this browser noted on 1 Nov 2026: " in found


# The service itself is not busy, and a refusal would be a fault of the page.
BUSY_ONCE = """
const ask = fetch;
let refused = false;
window.fetch = (address, options) => {
  if (refused || !String(address).includes("/api/signals/ledger")) return ask(address, options);
  refused = true;
  const body = JSON.stringify({ error: { code: "overloaded", message: "The service is busy." } });
  return Promise.resolve(new Response(body, { status: 503, headers: { "Retry-After": "1" } }));
};
"""


def test_check_waits_as_long_as_the_service_asks_for_and_goes_on(open_page: OpenPage) -> None:
    page = open_page("/ledger", script=BUSY_ONCE)
    page.get_by_role("button", name="Check the whole ledger").click()
    page.get_by_text("The service is busy. The check continues automatically.").wait_for()
    page.get_by_text(f"{ENTRIES} entries verified").wait_for()


def test_failure_says_nothing_about_the_ledger(open_page: OpenPage) -> None:
    page = open_page("/ledger")
    page.route("**/api/signals/ledger?*", lambda route: route.fulfill(body="no JSON"))
    assert "which says nothing about the ledger" in verdict_of(page)


def test_scorecard_shows_on_another_site(open_page: OpenPage, server: Server) -> None:
    page = open_page("/publishers/anna")
    picture = page.get_by_role("img", name="The scorecard of anna")
    picture.scroll_into_view_if_needed()
    expect(picture).to_have_js_property("complete", value=True)
    assert picture.evaluate("(image) => [image.naturalWidth, image.naturalHeight]") == [480, 160]
    page.get_by_role("button", name="Copy").click()
    page.get_by_text("Copied.").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == page.locator("#snippet").inner_text()
    assert f'<img src="{server.url}/publishers/anna/scorecard.svg"' in copied


def test_both_ends_of_the_equity_curve_are_labelled_on_one_line(open_page: OpenPage) -> None:
    page = open_page("/publishers/anna", viewport={"width": 360, "height": 740})
    begins, ends = [each.bounding_box() for each in page.locator(".equity .times time").all()]
    assert begins
    assert ends
    assert begins["y"] == ends["y"]
    assert begins["x"] + begins["width"] < ends["x"]
