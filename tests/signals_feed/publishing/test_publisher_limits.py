"""Exactly how much one publisher may publish, even if all of it is sent at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal
from threading import Barrier
from typing import Any

import pytest
import time_machine
from django.contrib.auth.models import Permission
from django.db import connection

from accounts.models import User
from signals_feed.models import Signal
from signals_feed.publishing.actions import publish
from signals_feed.rules import Quoted, SignalRefused, SignalTerms
from tests.factories import NOON, make_instrument, make_user
from tests.market.ticking import NOON_MS

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("clock", "own_market")]
QUOTE = Quoted(Decimal("1.0841"), Decimal("1.0843"), NOON_MS, "e1", 7)
BUY = SignalTerms("EURUSD", "buy", Decimal("1.0810"), Decimal("1.0900"), Decimal("1.0843"))
AT_ONCE = 8


def make_publisher(name: str) -> User:
    user = make_user(name)
    user.user_permissions.add(Permission.objects.get(codename="publish_signal"))
    return User.objects.get(pk=user.pk)


@pytest.fixture
def anna(transactional_db: None) -> User:
    make_instrument()
    return make_publisher("anna")


def test_so_many_a_minute_and_no_more(anna: User, settings: Any) -> None:
    settings.PUBLICATIONS_PER_MINUTE = 2
    for _ in range(2):
        publish(BUY, anna, QUOTE)
    with pytest.raises(SignalRefused, match="2 signals within a minute, which is the limit. Wait a minute"):
        publish(BUY, anna, QUOTE)
    assert publish(BUY, make_publisher("ben"), QUOTE).status == "active"
    with time_machine.travel(NOON + timedelta(seconds=60), tick=False):
        assert publish(BUY, anna, QUOTE._replace(time_ms=NOON_MS + 60_000)).status == "active"
    assert Signal.objects.filter(user=anna).count() == 3


def test_clock_that_was_set_back_locks_nobody_out(anna: User, settings: Any) -> None:
    """The market's time is ahead of the machine's then, and a minute of it has passed."""
    settings.PUBLICATIONS_PER_MINUTE = 2
    ahead_ms = NOON_MS + 300_000
    published = [publish(BUY, anna, QUOTE._replace(time_ms=ahead_ms)) for _ in range(2)]
    with pytest.raises(SignalRefused, match="Wait a minute"):
        publish(BUY, anna, QUOTE._replace(time_ms=ahead_ms + 59_000))
    later = publish(BUY, anna, QUOTE._replace(time_ms=ahead_ms + 60_000))

    assert [each.published_at - NOON for each in (*published, later)] == [
        timedelta(seconds=300),
        timedelta(seconds=300),
        timedelta(seconds=360),
    ]


def test_so_many_active_and_no_more(anna: User, settings: Any) -> None:
    settings.ACTIVE_SIGNALS_PER_PUBLISHER = 3
    for _ in range(3):
        publish(BUY, anna, QUOTE)
    with pytest.raises(SignalRefused, match="3 of your signals are active, which is the limit. Close one"):
        publish(BUY, anna, QUOTE)


def test_nought_is_no_limit(anna: User, settings: Any) -> None:
    settings.PUBLICATIONS_PER_MINUTE = settings.ACTIVE_SIGNALS_PER_PUBLISHER = 0
    for _ in range(12):
        publish(BUY, anna, QUOTE)
    assert Signal.objects.filter(user=anna).count() == 12


def test_all_at_once_are_as_many_as_one_after_the_other(anna: User, settings: Any) -> None:
    settings.PUBLICATIONS_PER_MINUTE = 3
    barrier = Barrier(AT_ONCE)

    def send(_: int) -> bool:
        barrier.wait()
        try:
            publish(BUY, anna, QUOTE)
        except SignalRefused:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(AT_ONCE) as pool:
        assert sum(pool.map(send, range(AT_ONCE))) == 3
    assert Signal.objects.filter(user=anna).count() == 3
