"""Signals in the back office: to look at, to cancel, and to publish under one's own name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Permission
from django.utils import timezone

from accounts.models import User
from core.events.kinds import EventKind
from market import runtime as market
from signals_feed.ledger.ledger import LedgerEntry
from signals_feed.models import Signal
from signals_feed.publishing.actions import cancel
from tests.accounts.back_office.office import (
    Office,
    add_to,
    address,
    change,
    list_of,
    logged,
    published,
    said,
    text_of,
)
from tests.contract.published import end, make_published, quoted
from tests.factories import NOON, make_instrument, make_signal, make_user, put_quote
from tests.signals_feed.filled_signals import make_filled, make_unfilled

pytestmark = pytest.mark.django_db


def reasons() -> list[str]:
    return list(Signal.objects.order_by("pk").values_list("cancel_reason", flat=True))


def test_the_button_cancels_with_a_reason(office: Office) -> None:
    signal = make_signal()
    office.post(address(signal, "cancel", signal.pk), reason="Fat finger", answered="1")
    assert reasons() == ["Fat finger"]
    assert logged(signal) == [("boss", "Cancelled: Fat finger")]
    assert published() == [(EventKind.SIGNAL_CANCELLED, "boss")]


def test_the_action_cancels_all_that_were_chosen(office: Office) -> None:
    signals = [make_signal(), make_signal(expires_at=timezone.now())]
    office.answer("cancel_chosen", *signals, reason="Bad feed")
    assert reasons() == ["Bad feed", "Bad feed"]
    assert [logged(signal) for signal in signals] == [[("boss", "Cancelled: Bad feed")]] * 2


def test_nobody_cancels_a_signal_of_their_own_which_could_be_one_that_goes_wrong(office: Office) -> None:
    own, other = make_signal(user=User.objects.get(username="boss")), make_signal()
    told = said(office.answer("cancel_chosen", own, other, reason="Bad feed"))
    assert any("Another member of staff" in message for message in told)
    assert {each.pk: each.cancel_reason for each in Signal.objects.all()} == {
        own.pk: "",
        other.pk: "Bad feed",
    }


@pytest.mark.parametrize("reason", ["", "   ", "x" * 201])
def test_no_reason_or_an_endless_one_cancels_nothing(office: Office, reason: str) -> None:
    signal = make_signal(user=make_user("ada"))
    assert "buy EURUSD at 1.08420 by ada" in text_of(office.act("cancel_chosen", signal))
    assert office.answer("cancel_chosen", signal, reason=reason).status_code == 200
    assert reasons() == [""]


def test_a_closed_signal_is_refused_in_words_and_holds_up_nothing(office: Office) -> None:
    closed, active = make_signal(status="closed"), make_signal()
    told = said(office.answer("cancel_chosen", closed, active, reason="Bad feed"))
    assert any("already been closed or cancelled" in message for message in told)
    assert Signal.objects.get(pk=active.pk).cancel_reason == "Bad feed"
    assert logged(closed) == []


@pytest.mark.parametrize(
    ("is_closed", "words"),
    [
        (True, "It closed on 18 Nov 2026"),
        (
            False,
            "It is being cancelled and closes at the next tradable price. The reason given: “Fat finger”",
        ),
    ],
)
def test_nothing_is_asked_about_a_signal_that_is_over(office: Office, is_closed: bool, words: str) -> None:
    signal = make_signal(status="closed") if is_closed else make_signal()
    if not is_closed:
        cancel(signal, reason="Fat finger", by="boss")
    page = text_of(office.get(address(signal, "cancel", signal.pk)))
    assert "This signal can no longer be cancelled" in page
    assert words in page
    assert 'name="reason"' not in page
    other = make_signal()
    assert 'name="reason"' in text_of(office.get(address(other, "cancel", other.pk)))


def test_the_action_asks_only_about_signals_that_can_be_cancelled(office: Office) -> None:
    over, active = make_signal(status="closed"), make_signal()
    answer = office.act("cancel_chosen", over, active)
    assert "Cancel this signal" in text_of(answer)
    assert [message.partition("It closed")[1] for message in said(answer)] == ["It closed"]
    assert f'value="{over.pk}"' not in text_of(answer)
    assert 'name="reason"' not in text_of(office.act("cancel_chosen", over))


def test_a_signal_cannot_be_edited_or_deleted(office: Office) -> None:
    signal = make_signal()
    office.post(change(signal), entry="2", status="closed", close_price="9", pnl="1000")
    assert office.post(address(signal, "delete", signal.pk), post="yes").status_code == 403
    office.act("delete_selected", signal, post="yes")
    kept = Signal.objects.get()
    assert (kept.entry, kept.status, kept.pnl) == (signal.entry, "active", None)


@pytest.fixture
def _market() -> Iterator[None]:
    make_instrument("EURUSD")
    put_quote("EURUSD", 1.0841, 1.08424)
    yield
    market.prices.clear()


def publish(office: Office, **changes: str) -> Any:
    terms = {"symbol": "EURUSD", "direction": "buy", "entry": "1.08424", "stop_loss": "1.0810"}
    fields = terms | {"take_profit": "1.0900", "token": str(uuid4()), "answered": "1"} | changes
    return office.post(add_to(Signal), **fields)


@pytest.mark.usefixtures("_market")
def test_staff_publish_under_their_own_name() -> None:
    curator = make_user("curator", is_staff=True)
    curator.user_permissions.add(*Permission.objects.filter(codename__in=("view_signal", "publish_signal")))
    office = Office(curator)
    asked = text_of(office.get(add_to(Signal)))
    assert "you cannot publish for another user" in asked
    assert 'type="hidden" name="token"' in asked
    # The checks are those of every publisher.
    assert "may not be below the ask, which is 1.08424" in text_of(publish(office, entry="1.0700"))
    answer = publish(office)
    signal = Signal.objects.get()
    assert (signal.user, answer["Location"]) == (office.user, change(signal))
    assert logged(signal) == [("curator", "Published.")]
    assert published()[-1] == (EventKind.SIGNAL_PUBLISHED, office.user.get_username())


@pytest.mark.usefixtures("_market")
def test_staff_without_the_permission_publish_and_cancel_nothing() -> None:
    reader = make_user(is_staff=True)
    reader.user_permissions.add(*Permission.objects.filter(codename__in=("view_signal", "add_signal")))
    office = Office(reader)
    assert publish(office).status_code == 403
    assert not Signal.objects.exists()
    signal = make_signal()
    assert office.post(address(signal, "cancel", signal.pk), reason="no", answered="1").status_code == 403
    office.answer("cancel_chosen", signal, reason="no")
    assert reasons() == [""]


def test_page_of_a_signal_shows_its_evidence_and_leads_to_scorecard_and_ledger(office: Office) -> None:
    eurusd = make_instrument("EURUSD")
    at = NOON + timedelta(milliseconds=60)
    signal = make_published(
        eurusd, quoted("1.08400", "1.08424", at, epoch="k3v9", seq=3588), make_user("ada")
    )
    end(signal, quoted("1.09300", "1.09330", NOON + timedelta(hours=1)), "target", "take_profit")
    page = text_of(office.get(change(signal)))
    assert "bid 1.08400, ask 1.08424" in page
    assert "12:00:00.060 UTC, number 3,588 in series k3v9" in page
    assert "furthest for 1.09" in page
    assert "The target fills at its own price." in page
    assert 'href="/publishers/ada"' in page
    assert f"{list_of(LedgerEntry)}?q={signal.pk}" in page


def test_ledger_is_found_by_signal_as_the_signal_is_and_never_changed(office: Office) -> None:
    eurusd = make_instrument("EURUSD")
    signal = make_published(eurusd, quoted("1.08400", "1.08424"))
    other = make_published(eurusd, quoted("1.08400", "1.08424"))
    entry = LedgerEntry.objects.get(signal=signal.pk)
    page = text_of(office.get(f"{list_of(LedgerEntry)}?q={signal.pk}"))
    assert entry.hash in page
    assert str(other.pk) not in page
    assert entry.hash not in text_of(office.get(f"{list_of(LedgerEntry)}?q=nothing"))
    assert "1 result" in text_of(office.get(f"{list_of(Signal)}?q={signal.pk}"))
    office.post(change(entry), payload="{}")
    assert LedgerEntry.objects.get(pk=entry.pk).payload == entry.payload
    assert office.post(address(entry, "delete", entry.pk), post="yes").status_code == 403


def test_a_signal_reads_as_on_the_site(office: Office) -> None:
    gold = make_instrument("XAUUSD", digits=2)
    signal = make_published(gold, quoted("4100.10", "4100.40"), stop_loss="4090", take_profit="4120")
    end(signal, quoted("4120.00", "4120.30", NOON + timedelta(hours=1)), "target", "take_profit")
    for page in (text_of(office.get(list_of(Signal))), text_of(office.get(change(signal)))):
        assert "4,100.40" in page
        assert "Stop" in page
        assert "Target" in page
        assert not re.search("Stop loss|Take profit|4100.40", page, re.IGNORECASE)
    assert "Furthest for" in page
    assert "Furthest against" in page


def test_fill_stands_beside_the_entry_and_what_has_none_has_no_result(office: Office) -> None:
    filled = text_of(office.get(change(make_filled())))
    assert "1.08440" in filled
    assert "the result runs from the fill or the entry" in filled
    assert "It is filled at the first settled tick" in filled
    unfilled = make_unfilled()
    assert "Unfilled" in text_of(office.get(change(unfilled)))
    assert "0.00" not in text_of(office.get(f"{list_of(Signal)}?q={unfilled.pk}"))
