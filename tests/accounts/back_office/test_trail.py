"""The trail of what staff did, and the events, in words."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import Group
from django.db import transaction

from accounts.models import Account, Tier, User
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from tests.factories import make_account, make_user

from .office import Office, change, list_of, logged, text_of

pytestmark = pytest.mark.django_db


def last(row: Account | User) -> str:
    return logged(row)[-1][1]


def test_the_log_says_what_was_switched_given_and_taken_and_no_name_or_address(office: Office) -> None:
    account, ada = make_account(), make_user("ada")
    office.post(change(account), tier=account.tier.pk, may_publish="on")
    assert last(account) == "Changed May publish signals (now on)."
    office.post(change(account), tier=Tier.objects.get(name="premium").pk)
    assert last(account) == "Changed Tier (now Premium) and May publish signals (now off)."
    support, curator = (Group.objects.get(name=f"Role: {name}") for name in ("support", "curator"))
    office.post(change(ada), username="ada", email="ada@tickwire.test", is_active="on", groups=support.pk)
    changed = {"username": "lovelace", "email": "love@lace.test", "groups": curator.pk}
    office.post(change(ada), **changed, is_active="on", is_staff="on")
    assert last(ada).startswith("Changed Username, Email, Roles")
    assert "(added Role: curator; removed Role: support)" in last(ada)
    assert "Staff (now on)" in last(ada)
    assert "lace" not in last(ada)
    # And it opens with acts on what no longer has pages.
    LogEntry.objects.create(user=office.user, object_repr="A report", action_flag=CHANGE, content_type=None)
    page = text_of(office.get(list_of(LogEntry))).lower()
    assert "a report" in page
    for odd in ("action time", "content type", "object repr", "action flag", "accounts | user"):
        assert odd not in page


def test_codes_times_and_names_of_events_are_in_the_words_of_the_pages(office: Office) -> None:
    account = make_account()
    name = account.user.get_username()
    stream = {"account": account.pk, "path": "/ws/market", "opened_at": 1795780837.520167}
    with transaction.atomic():
        ControlEvent.objects.publish(EventKind.STREAM_CLOSED, by=name, **stream)
        ControlEvent.objects.publish(EventKind.CANDLES_IMPORTED, symbol="EURUSD")
        for reason in ("stop_loss", "take_profit"):
            ControlEvent.objects.publish(EventKind.SIGNAL_CLOSED, signal="1", reason=reason)
        ControlEvent.objects.publish(EventKind.SIGNAL_CANCELLED, by="market", signal="1", reason="A reason.")
        ControlEvent.objects.publish(EventKind.FACTOR_ADDED, by="ada", account=1, factor="totp")
        ControlEvent.objects.publish(EventKind.TIER_CHANGED, by="ada", tier="premium")
    page = text_of(office.get(list_of(ControlEvent)))
    for words in (
        "reason Stopped out",
        "reason Target reached",
        "reason A reason.",
        "factor Authenticator app",
        "tier Premium",
        f"account {name}, opened at 27 Nov 2026, 12:00:37 UTC, path /ws/market",
        "symbol EURUSD",
        "the service",
    ):
        assert words in page
    assert not any(code in page for code in ("stop_loss", "take_profit", "totp", ">market<", "{&quot;"))
