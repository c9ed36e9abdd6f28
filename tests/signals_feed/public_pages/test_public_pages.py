"""What all public pages of signals have in common."""

from __future__ import annotations

import re
from decimal import Decimal
from html import unescape

import pytest
from django.test import Client

from market.engine.listeners import SeriesEnding
from signals_feed.ledger.ledger import LedgerEntry, LedgerHead
from signals_feed.models import Signal
from signals_feed.public_pages.ledger import words_of
from signals_feed.publishers.standings import kept_standings
from signals_feed.publishing.actions import cancel, end_signals, remove_demo
from tests.accounts.panel.test_look import assert_is_ours
from tests.databases.queries import count_queries
from tests.factories import make_account, make_user
from tests.signals_feed.published_signals import close_at, make_published

pytestmark = [pytest.mark.django_db, pytest.mark.services]
BROWSER = {"accept": "text/html"}


def make_closed(name: str) -> Signal:
    signal = make_published(user=make_user(name))
    close_at(signal, Decimal("1.0874"), Decimal("1.0875"))
    return signal


@pytest.mark.parametrize("path", ["/publishers", "/publishers/anna", "/ledger", "/signals/{signal}"])
def test_page_is_public_and_ours(path: str) -> None:
    signal = make_closed("anna")
    answer = Client().get(path.format(signal=signal.pk), headers=BROWSER)
    assert answer.status_code == 200
    assert_is_ours(answer.text)


@pytest.mark.parametrize(
    ("path", "words"),
    [("/publishers", "No signal has been published yet"), ("/ledger", "The ledger is empty until")],
)
def test_page_is_there_before_the_first_signal(path: str, words: str) -> None:
    assert words in Client().get(path, headers=BROWSER).text


@pytest.mark.parametrize(
    "path",
    [
        *("/publishers/silent", "/publishers/nobody", "/publishers/a%00b", "/publishers/nobody/marks"),
        *("/publishers/silent/scorecard.svg", "/signals/nothing", "/signals/1"),
        "/signals/080b19cc-d74e-40f7-b52a-5ff98b5a6a6b",
        "/signals/6F1C2F5E-8F0B-4A53-9D0E-2B8F6F6F9A01",
    ],
)
def test_what_was_never_published_has_no_page(path: str) -> None:
    make_user("silent")
    assert Client().get(path, headers=BROWSER).status_code == 404


@pytest.mark.parametrize("path", ["/publishers", "/publishers/%3Cb%3Ex&y", "/signals/{signal}"])
def test_texts_are_texts_and_nothing_else(path: str) -> None:
    signal = make_published(user=make_user("<b>x&y"))
    cancel(signal, reason="<i>no</i>", by="boss")
    shown = Client().get(path.format(signal=signal.pk)).text
    assert "<b>x" not in shown
    assert "&lt;b&gt;x&amp;y" in shown
    assert "<i>no" not in shown
    assert ("&lt;i&gt;no" in shown) is (path != "/publishers")


@pytest.mark.parametrize(
    ("path", "queries"), [("/publishers", 2), ("/publishers/anna", 8), ("/signals/{signal}", 8)]
)
def test_page_costs_as_many_queries_for_many_publishers_as_for_one(path: str, queries: int) -> None:
    signal = make_closed("anna")
    for name in ("bert", "cora"):
        for _ in range(2):
            kept_standings.clear()
            with count_queries() as asked:
                Client().get(path.format(signal=signal.pk))
        assert len(asked) == queries, asked
        make_closed(name)
        close_at(make_published(user=signal.user), Decimal("1.0874"), Decimal("1.0875"))


# The page of the ledger: its newest entries in words, and any other one by its position.
def page(query: str = "") -> str:
    return unescape(Client().get(f"/ledger{query}").text)


def positions(shown: str) -> list[int]:
    return [int(found) for found in re.findall(r'data-position="(\d+)"', shown)]


def test_entries_are_told_in_words_newest_first() -> None:
    anna = make_user("anna")
    closed, cancelled = make_published(user=anna), make_published(user=anna)
    close_at(closed, Decimal("1.0874"), Decimal("1.0875"))
    cancel(cancelled, reason="The wrong symbol.", by="boss")
    shown = page()
    assert positions(shown) == [4, 3, 2, 1]
    assert re.findall(r'<span class="words">(.*?)</span>', shown) == [
        "It was cancelled: The wrong symbol.",
        "Closed by the publisher: closed at 1.08740, +1.00\xa0R.",
        *[f"publisher-{anna.pk} published: buy EURUSD at 1.08420, stop 1.08100, target 1.09000."] * 2,
    ]
    assert LedgerHead.objects.now().hash in shown
    assert f'href="/signals/{closed.pk}"' in shown
    assert "anna" not in shown


def test_what_the_service_cancels_is_not_said_of_staff() -> None:
    by_staff, by_service = make_published(), make_published()
    cancel(by_staff, reason="The wrong symbol.", by="boss")
    end_signals(SeriesEnding("EURUSD", None, 0, "demo", "kraken"), [], "")
    shown = page()
    assert "It was cancelled: The wrong symbol." in shown
    assert "It was cancelled: Its prices came from demo and come from kraken now" in shown
    own = unescape(Client().get(f"/signals/{by_service.pk}").text)
    assert "It was cancelled" in own
    assert "Staff" not in own


def test_entry_of_a_removed_signal_leads_nowhere() -> None:
    user = make_user()
    make_account(user, is_demo=True)
    make_published(user=user)
    remove_demo([user.pk])
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


@pytest.mark.parametrize("at", ["x", "-1", "0", "٣", "9" * 30, "1.5", "99999"])
def test_what_is_no_position_shows_the_newest(at: str) -> None:
    make_published()
    shown = page(f"?at={at}")
    assert positions(shown) == [1]
    assert ("There is no entry 99,999: the ledger ends at entry 1." in shown) is (at == "99999")


def test_prices_have_separators_and_the_digits_of_the_instrument() -> None:
    payload = (
        '{"direction":"sell","symbol":"US500","user":"publisher-9","entry":"6759","stop_loss":"6842.4",'
        '"take_profit":"6551"}'
    )
    entry = LedgerEntry(kind="publish", payload=payload)
    assert words_of(entry, 1).endswith("at 6,759.0, stop 6,842.4, target 6,551.0.")
    assert words_of(entry).endswith("at 6,759, stop 6,842.4, target 6,551.")


@pytest.mark.parametrize("payload", ["", "[]", "{}", '{"close_price":1}', "null", '{"pnl_r":"x"}'])
def test_entry_that_nobody_can_read_says_of_which_kind_it_is(payload: str) -> None:
    assert words_of(LedgerEntry(kind="close", payload=payload)) == "Close."


@pytest.mark.parametrize(
    ("kind", "payload", "words"),
    [
        ("arm", '{"for":"fill"}', "The engine looks for the tick at which it is filled."),
        ("arm", '{"for":"kind_changed"}', "It ends at once, at the last price that may be shown."),
        ("fill", '{"fill_price":"1.0842"}', "It was filled at 1.0842."),
        ("close_request", "{}", "Its publisher asked to close it."),
        ("archive", '{"day":"2026-11-28"}', "The archive of 2026-11-28 was sealed."),
    ],
)
def test_entry_says_what_it_records(kind: str, payload: str, words: str) -> None:
    assert words_of(LedgerEntry(kind=kind, payload=payload)) == words
