"""A result gets its mark once it was checked, and none but `Not verified` where its evidence was altered."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from playwright.sync_api import expect

from signals_feed.ledger.guards import put_up_triggers, take_down_triggers
from signals_feed.models import Evidence
from signals_feed.publisher_checks import checked_results
from tests.browser.conftest import OpenPage
from tests.browser.looks import misplaced, violations
from tests.client import Server
from tests.factories import make_instrument, make_user, put_quote
from tests.signals_feed.filled_signals import make_filled, make_waiting, reach_target
from tests.signals_feed.published_signals import close_at, make_published


@pytest.fixture(autouse=True)
def _results(server: Server, settings: Any) -> None:
    """One of Anna's, which holds, one of Bert's, whose evidence somebody altered, and two that are active."""
    settings.DEMO = settings.PUBLIC_TERMINAL = True
    checked_results.clear()
    make_instrument("EURUSD")
    put_quote("EURUSD")
    make_filled(make_user("cora"))
    make_waiting(make_user("dora"))
    reach_target(make_filled(make_user("anna")))
    signal = make_published(user=make_user("bert"))
    close_at(signal, Decimal("1.0874"), Decimal("1.0875"))
    take_down_triggers()
    Evidence.objects.filter(signal=signal, kind="exit").update(bid="1.0900", ask="1.0901")
    put_up_triggers()


def test_terminal_marks_what_holds_and_nothing_else(open_page: OpenPage) -> None:
    page = open_page("/terminal", viewport={"width": 1440, "height": 900})
    signals = page.locator("#signals li")
    holds, altered = signals.filter(has_text="by anna"), signals.filter(has_text="by bert")
    expect(holds.locator("[data-part=page]")).to_have_text("✓ Verified at a venue")
    expect(holds.locator("[data-part=fill]")).to_have_text("1.08440")
    expect(altered.locator("[data-part=page]")).to_have_text("Not verified")
    expect(holds.locator("[data-part=status]")).to_have_text("Target reached")
    filled, waiting = signals.filter(has_text="by cora"), signals.filter(has_text="by dora")
    expect(filled.locator("[data-part=fill]")).to_have_text("1.08440")
    expect(filled.locator("[data-part=page]")).to_have_text("✓ Verified at a venue")
    expect(waiting.locator("[data-part=page]")).to_have_text("Details")
    expect(waiting.locator("[data-part=status]")).to_have_text("Waiting for its fill")
    assert misplaced(page, "#signals .about", "span, a") == []
    altered.locator("[data-part=page]").click()
    expect(page.get_by_role("alert")).to_contain_text("This signal does not hold.")


@pytest.mark.parametrize("width", [360, 1440])
def test_list_of_publishers_marks_whose_results_hold(open_page: OpenPage, width: int) -> None:
    page = open_page("/publishers", viewport={"width": width, "height": 900})
    marks = {name: page.locator(f"[data-publisher={name}] [data-checked]") for name in ("anna", "bert")}
    for mark in marks.values():
        mark.scroll_into_view_if_needed()
    expect(marks["anna"]).to_have_text("Verified at a venue: 1")
    expect(marks["bert"]).to_have_text("Not verified: 1")
    assert misplaced(page, "[data-publisher]", "td, th") == []
    assert violations(page) == []
    marks["bert"].click()
    page.wait_for_url("**/publishers/bert#latest")
    expect(page.locator("#latest")).to_be_in_viewport()
