"""The page of one signal: its terms and result, and everything that the result follows from."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from html import unescape
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from signals_feed import publisher_checks
from signals_feed.api.proof import look_up_proof
from signals_feed.ledger.guards import put_up_triggers, take_down_triggers
from signals_feed.marks import Mark
from signals_feed.models import Evidence, Signal
from signals_feed.public_pages.ledger import MOST_ASKED
from signals_feed.public_pages.signal import in_digits
from signals_feed.publishing.actions import cancel
from signals_feed.result_checks import check_signals
from tests.databases.queries import count_queries
from tests.factories import NOON, make_instrument, make_signal, make_user, put_quote
from tests.signals_feed.published_signals import close_at, make_published

pytestmark = pytest.mark.django_db
LATER = NOON + timedelta(hours=3, minutes=5, seconds=7)


def make_closed(reason: str = "manual") -> Signal:
    signal = make_published(published_at=NOON, user=make_user("anna"))
    close_at(signal, Decimal("1.0874"), Decimal("1.0875"), reason, LATER)
    signal.refresh_from_db()
    return signal


def page(signal: Signal) -> str:
    answer = Client().get(f"/signals/{signal.pk}", headers={"accept": "text/html"})
    assert answer.status_code == 200
    return unescape(answer.text)


def test_result_its_mark_its_ticks_and_its_entries_are_shown() -> None:
    shown = page(make_closed())
    assert "+1.00\xa0R" in shown
    assert "+32.0\xa0pips" in shown
    assert "Closed by the publisher" in shown
    assert '<span class="phrase">after 3\xa0h\xa05\xa0min</span>' in shown
    assert "Recorded here" in shown
    assert "The result holds." in shown
    for ticks in (
        r"Evidence at entry.*18 Nov 2026, 12:00:00\.000 UTC.*1\.08410.*1\.08420",
        r"Evidence at exit.*18 Nov 2026, 15:05:07\.000 UTC.*1\.08740.*1\.08750",
    ):
        assert re.search(ticks, shown, re.DOTALL)
    bars = re.findall(r'<rect class="(risk|reward)" x="(\d+)" width="(\d+)"', shown)
    assert bars == [("risk", "20", "341"), ("reward", "361", "619")]
    links = re.findall(r'href="(/ledger\?[^"]*)"', shown)
    assert links == ["/ledger?at=1#entry-1", "/ledger?at=2#entry-2"]


@pytest.mark.parametrize(
    ("symbol", "type", "gains"),
    [
        ("XAUUSD", "commodity", ["+32.0\xa0pips", "+0.30%"]),
        ("GER40", "index", ["+0.00320\xa0points", "+0.30%"]),
        ("AAPL", "stock", ["+0.30%"]),
        ("BTCUSD", "crypto", ["+0.30%"]),
        ("WTI", "commodity", ["+0.30%"]),
    ],
)
def test_result_is_in_the_unit_that_the_market_counts_in(symbol: str, type: str, gains: list[str]) -> None:
    signal = make_published(make_instrument(symbol, type=type))
    close_at(signal, Decimal("1.0874"), Decimal("1.0875"))
    (also,) = re.findall(r'<p class="also">(.*?)</p>', page(signal))
    assert re.findall(r">([^<]+)</span>", also) == gains


def test_arithmetic_is_that_of_the_interface_with_the_numbers_put_in() -> None:
    signal = make_closed()
    rows = re.findall(
        r"<code>([^<]*)</code></th>.*?<code>([^<]*)</code>.*?<code>([^<]*)</code>.*?<code>([^<]*)</code>",
        page(signal),
    )
    proof = look_up_proof(signal, check_signals([signal])[signal.pk])
    assert [(name, formula, Decimal(value)) for name, formula, _, value in rows] == [
        (step.name, step.formula, Decimal(step.exact)) for step in proof.steps
    ]
    numbers = {name: with_numbers for name, _, with_numbers, _ in rows}
    assert numbers["paid"] == "max(1.08420, 1.08420)"
    assert numbers["pnl"] == "0.00320 / 0.0001"
    assert numbers["pnl_percent"] == "0.00320 / 1.08420 * 100"


def test_price_has_the_digits_of_its_instrument_and_is_never_rounded() -> None:
    shown = [in_digits(exact, 5) for exact in ("1.1592", "-7", "1.1592001")]
    assert shown == ["1.15920", "-7.00000", "1.1592001"]


@pytest.mark.usefixtures("own_market")
def test_active_signal_has_terms_and_no_result() -> None:
    shown = page(make_published(published_at=NOON))
    assert "The terms hold." in shown
    assert "Evidence at entry" in shown
    assert not any(word in shown for word in ("Evidence at exit", 'class="mark', "<dt>Exit", "pips"))


@pytest.mark.usefixtures("own_market")
def test_active_signal_says_what_it_would_give_now() -> None:
    signal = make_published(published_at=NOON, user=make_user("anna"))
    assert '<p class="sum' not in page(signal)
    # A buyer gets out on the bid.
    put_quote("EURUSD", 1.0826, 1.0827)
    shown = page(signal)
    assert '<p class="sum loss">\N{MINUS SIGN}0.50\xa0R</p>' in shown
    assert '<span class="phrase">\N{MINUS SIGN}16.0\xa0pips</span>' in shown
    assert "if it had closed at the last price before this page was loaded, 1.08260" in shown


def test_reason_of_a_cancellation_is_public_at_once_and_for_good() -> None:
    signal = make_published(published_at=NOON)
    cancel(signal, reason="The wrong symbol.", by="boss")
    shown = page(signal)
    assert "The reason: “The wrong symbol.”</p>" in shown
    assert "It closes at" in shown
    assert "Being cancelled" in shown
    assert "boss" not in shown
    close_at(signal, Decimal("1.0800"), Decimal("1.0801"), "cancelled")
    shown = page(signal)
    assert "The wrong symbol." in shown
    assert "<strong>It was cancelled</strong>" in shown
    assert "−1.31\xa0R" in shown


def test_altered_signal_says_that_it_does_not_hold() -> None:
    signal = make_closed()
    take_down_triggers()
    Signal.objects.update(pnl="99.0")
    shown = page(signal)
    put_up_triggers()
    assert "This signal does not hold." in shown
    assert "pnl is 99" in shown
    assert not any(mark.label in shown for mark in Mark if mark != Mark.NOT_VERIFIED)


# What lists ask before they mark a result.
@pytest.fixture
def closed() -> list[Signal]:
    anna = make_user("anna")
    made = [make_published(user=anna) for _ in range(3)]
    for signal in made:
        close_at(signal, Decimal("1.0874"), Decimal("1.0875"))
    return made


def marks(*ids: object) -> dict[str, str]:
    answer = Client().get("/signals/checked", {"ids": ",".join(map(str, ids))})
    assert (answer.status_code, answer["Cache-Control"]) == (200, "private, max-age=300")
    return {pk: mark for pk, (mark, _) in answer.json()["marks"].items()}


def of_publisher() -> dict[str, int]:
    answer = Client().get("/publishers/anna/marks").json()
    return {mark: count for mark, _, count in answer["marks"]}


def tamper(signal: Signal, **changes: Any) -> None:
    take_down_triggers()
    Evidence.objects.filter(signal=signal, kind="exit").update(**changes)
    put_up_triggers()


def test_result_that_holds_has_the_mark_of_its_prices(closed: list[Signal]) -> None:
    ids = [signal.pk for signal in closed]
    assert marks(*ids) == {str(pk): "recorded_here" for pk in ids}
    assert of_publisher() == {"recorded_here": 3}


@pytest.mark.parametrize("path", ["/publishers/anna", "/signals/{pk}"])
def test_tampered_evidence_is_not_verified_and_pages_say_so(closed: list[Signal], path: str) -> None:
    tamper(closed[1], bid=Decimal("1.0900"), ask=Decimal("1.0901"))
    expected = ("recorded_here", "not_verified", "recorded_here")
    assert marks(*(signal.pk for signal in closed)) == {
        str(signal.pk): mark for signal, mark in zip(closed, expected, strict=True)
    }
    assert of_publisher() == {"recorded_here": 2, "not_verified": 1}
    shown = Client().get(path.format(pk=closed[1].pk)).text
    (mark,) = re.findall(r'<a class="mark not_verified".*?</a>', shown, re.DOTALL)
    assert "Not verified" in mark


def test_signal_without_evidence_is_not_verified() -> None:
    signal = make_signal(user=make_user("anna"), status="closed")
    assert marks(signal.pk) == {str(signal.pk): "not_verified"}
    assert of_publisher() == {"not_verified": 1}


def test_mark_is_found_once_and_again_when_its_signal_has_ended(closed: list[Signal]) -> None:
    signal = make_published(user=closed[0].user)

    def asked() -> dict[str, list[str]]:
        ids = f"{closed[0].pk},{signal.pk}"
        found: dict[str, list[str]] = Client().get("/signals/checked", {"ids": ids}).json()["marks"]
        return found

    before = asked()
    with count_queries() as queries:
        assert asked() == before
    assert len(queries) == 1, queries
    # That its target was reached, its own tick denies.
    close_at(signal, Decimal("1.0874"), Decimal("1.0875"), "take_profit")
    assert asked()[str(signal.pk)][0] == "not_verified"


def test_unknown_signals_and_nonsense_are_left_out(closed: list[Signal]) -> None:
    assert marks(uuid4(), "x", "", "\0") == {}


def test_no_more_are_checked_than_a_list_shows(closed: list[Signal]) -> None:
    others = [uuid4() for _ in range(MOST_ASKED - 1)]
    assert len(marks(*others, *(signal.pk for signal in closed))) == 1


def test_publisher_is_not_checked_again_at_once_but_seconds_after_the_next_fill_and_close(
    closed: list[Signal], monkeypatch: pytest.MonkeyPatch
) -> None:
    of_publisher()
    filled = make_published(user=closed[0].user)
    with count_queries() as asked:
        assert of_publisher() == {"recorded_here": 3}
    assert len(asked) == 1, asked
    monkeypatch.setattr(publisher_checks, "AGAIN_S", 0)
    assert of_publisher() == {"recorded_here": 4}
    with count_queries() as asked:
        of_publisher()
    assert len(asked) == 1, asked
    close_at(filled, Decimal("1.0874"), Decimal("1.0875"), "take_profit")
    assert of_publisher() == {"recorded_here": 3, "not_verified": 1}
