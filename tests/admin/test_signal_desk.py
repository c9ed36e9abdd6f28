"""Signals in the back office: to look at, and to cancel."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission
from django.utils import timezone

from accounts.models import User
from signals_feed.models import Signal
from tests.admin.office import Office, address, change, list_of, logged, published, said, text_of
from tests.factories import make_signal, make_user

pytestmark = pytest.mark.django_db


def reasons() -> list[str]:
    return list(Signal.objects.order_by("pk").values_list("cancel_reason", flat=True))


def test_the_button_cancels_with_a_reason(office: Office) -> None:
    signal = make_signal()
    office.post(address(signal, "cancel", signal.pk), reason="Fat finger", answered="1")
    assert reasons() == ["Fat finger"]
    assert logged(signal) == [("boss", "Cancelled: Fat finger")]
    assert published() == [("signal.cancelled", "boss")]


def test_the_action_cancels_all_that_were_chosen(office: Office) -> None:
    signals = [make_signal(), make_signal()]
    office.answer("cancel_chosen", *signals, reason="Bad feed")
    assert reasons() == ["Bad feed", "Bad feed"]
    assert [logged(signal) for signal in signals] == [[("boss", "Cancelled: Bad feed")]] * 2


def test_cancelling_asks_for_the_reason_first(office: Office) -> None:
    signal = make_signal(user=make_user("ada"))
    page = text_of(office.act("cancel_chosen", signal))
    assert "buy EURUSD at 1.08420 by ada" in page
    assert reasons() == [""]


@pytest.mark.parametrize("reason", ["", "   ", "x" * 201])
def test_no_reason_or_an_endless_one_cancels_nothing(office: Office, reason: str) -> None:
    signal = make_signal()
    assert office.answer("cancel_chosen", signal, reason=reason).status_code == 200
    assert reasons() == [""]


def test_a_closed_signal_is_refused_in_words_and_holds_up_nothing(office: Office) -> None:
    closed, active = make_signal(status="closed"), make_signal()
    told = said(office.answer("cancel_chosen", closed, active, reason="Bad feed"))
    assert any("was closed or cancelled before" in message for message in told)
    assert Signal.objects.get(pk=active.pk).cancel_reason == "Bad feed"
    assert logged(closed) == []


def test_a_signal_cannot_be_edited_deleted_or_added(office: Office) -> None:
    signal = make_signal()
    office.post(change(signal), entry="2", status="closed", close_price="9", pnl="1000")
    assert office.post(address(signal, "delete", signal.pk), post="yes").status_code == 403
    assert office.post(address(signal, "add"), entry="2").status_code == 403
    office.act("delete_selected", signal, post="yes")
    kept = Signal.objects.get()
    assert (kept.entry, kept.status, kept.pnl) == (signal.entry, "active", None)


def test_a_signal_is_found_by_its_identifier(office: Office) -> None:
    signal = make_signal()
    make_signal()
    page = text_of(office.get(f"{list_of(Signal)}?q={signal.pk}"))
    assert "1 result" in page


def test_a_reader_cannot_cancel() -> None:
    reader: User = make_user(is_staff=True)
    reader.user_permissions.add(Permission.objects.get(codename="view_signal"))
    office, signal = Office(reader), make_signal()
    assert office.post(address(signal, "cancel", signal.pk), reason="no", answered="1").status_code == 403
    office.answer("cancel_chosen", signal, reason="no")
    assert reasons() == [""]


def test_an_expired_signal_still_waiting_can_be_cancelled(office: Office) -> None:
    signal = make_signal(expires_at=timezone.now())
    office.answer("cancel_chosen", signal, reason="Bad feed")
    assert reasons() == ["Bad feed"]
