"""The page of the ledger: its newest entries in words, and any other one by its position."""

from __future__ import annotations

import re
from decimal import Decimal
from html import unescape

import pytest
from django.test import Client

from signals_feed.ledger.ledger import LedgerEntry, LedgerHead
from signals_feed.public_pages.ledger import words_of
from signals_feed.publishing.actions import cancel, remove_demo
from tests.accounts.panel.test_look import assert_is_ours
from tests.factories import make_account, make_user
from tests.signals_feed.published_signals import close_at, make_published

pytestmark = pytest.mark.django_db


def page(query: str = "") -> str:
    return unescape(Client().get(f"/ledger{query}").text)


def positions(shown: str) -> list[int]:
    return [int(found) for found in re.findall(r'data-position="(\d+)"', shown)]


def test_page_is_public_ours_and_there_before_the_first_entry() -> None:
    answer = Client().get("/ledger", headers={"accept": "text/html"})
    assert (answer.status_code, "It is empty until" in answer.text) == (200, True)
    assert_is_ours(answer.text)


def test_entries_are_told_in_words_newest_first() -> None:
    anna = make_user("anna")
    closed, cancelled = make_published(user=anna), make_published(user=anna)
    close_at(closed, Decimal("1.0874"), Decimal("1.0875"))
    cancel(cancelled, reason="The wrong symbol.", by="boss")
    shown = page()
    assert positions(shown) == [4, 3, 2, 1]
    assert re.findall(r'<span class="words">(.*?)</span>', shown) == [
        "Staff cancelled it: The wrong symbol.",
        "Closed at 1.0874, +1.00\xa0R: closed by the publisher.",
        *[f"publisher-{anna.pk} published: buy EURUSD at 1.0842, stop 1.081, target 1.09."] * 2,
    ]
    assert LedgerHead.objects.now().hash in shown
    assert f'href="/signals/{closed.pk}"' in shown
    assert "anna" not in shown


def test_entry_of_a_removed_signal_leads_nowhere() -> None:
    signal = make_published()
    make_account(signal.user, is_demo=True)
    remove_demo([signal.user_id])
    shown = page()
    assert "Removed together with the demo" in shown
    assert "/signals/" not in shown.split('class="chain-entries"')[1].split("</ol>")[0]


def test_a_position_is_shown_among_its_neighbours_and_the_pages_reach_every_entry() -> None:
    for _ in range(50):
        make_published()
    shown = page("?at=30")
    assert positions(shown) == list(range(33, 13, -1))
    assert re.search(r'id="entry-30" class="wanted"', shown)
    seen, query = set(positions(page())), ""
    while older := re.search(r'<a href="(\?at=\d+)">Older', page(query)):
        query = older[1]
        seen |= set(positions(page(query)))
    assert seen == set(range(1, 51))
    while newer := re.search(r'<a href="(\?at=\d+)">Newer', page(query)):
        query = newer[1]
    assert positions(page(query))[0] == 50


@pytest.mark.parametrize("at", ["x", "-1", "0", "٣", "9" * 30, "1.5"])
def test_what_is_no_position_shows_the_newest(at: str) -> None:
    make_published()
    assert positions(page(f"?at={at}")) == [1]


@pytest.mark.parametrize("payload", ["", "[]", "{}", '{"close_price":1}', "null", '{"pnl_r":"x"}'])
def test_entry_that_nobody_can_read_says_of_which_kind_it_is(payload: str) -> None:
    assert words_of(LedgerEntry(kind="close", payload=payload)) == "Close."
