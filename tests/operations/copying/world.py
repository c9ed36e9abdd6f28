"""Rows that a careless copy would change."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session

from accounts.models import AiUsage, Usage
from core.events.outbox import ControlEvent
from market.models import Candle, EngineState, LastQuote
from tests.factories import NOON, make_account, make_candle, make_instrument, make_key, make_news, make_user
from tests.signals_feed.published_signals import close_at, make_published

HOSTILE = 'tab\there, line\nbreak, \\ backslash \\N, "quotes", \x08\x0b\x0c\r, ümlaut 😀'


def fill() -> None:
    user = make_user("anna", first_name=HOSTILE[:100])
    make_user("gone").delete()
    account = make_account(user, "pro")
    make_key(account)
    instrument = make_instrument()
    for number, price in enumerate(("1.1", "0.00000001", "9999999.99999999", "1234567", "0.3")):
        value = Decimal(price)
        at = NOON + timedelta(days=40 * number, microseconds=number % 2)
        bar: dict[str, Any] = dict.fromkeys(("open", "high", "low", "close"), value)
        bar["volume"] = Decimal("1234567.12345678")
        if number % 2:
            bar |= {"ask_high": value, "ask_low": value}
        make_candle(instrument, opened_at=at, **bar)
    make_candle(instrument, "1h", simulated=True)
    LastQuote.objects.create(
        instrument=instrument,
        bid=Decimal("1.08"),
        ask=Decimal("1.0801"),
        quoted_at=NOON,
        seq=2**40,
        flow_state={"b": [1e-7, 1e22, 0.1, 1700000000000000001, None], "a": {"z": True, "text": HOSTILE}},
    )
    EngineState.objects.create(pk=1, epoch="before", position=7)
    closed = make_published(instrument, user=user, token=uuid.uuid4())
    close_at(closed, Decimal("1.0850"), Decimal("1.0851"))
    make_published(instrument, user=user)
    make_news(HOSTILE, sentiment_score=0.1 + 0.2)
    make_news("of one word", sentiment_score=1.0)
    AiUsage.objects.create(account=account, day=NOON.date(), used=3)
    Usage.objects.create(account=account, span="day", starts_at=NOON)
    Session.objects.create(session_key="k" * 32, session_data="x", expire_date=NOON)
    UserSession.objects.create(
        user=user, ip="2001:db8::1", session_key="k" * 32, user_agent="", last_seen_at=NOON
    )
    ControlEvent.objects.create(
        kind="test", facts={}, created_at=datetime(1999, 12, 31, 23, 59, 59, tzinfo=UTC)
    )
    assert Candle.objects.count() == 6
