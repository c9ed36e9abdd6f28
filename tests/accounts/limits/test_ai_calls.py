"""The AI calls of a UTC day: counted before they are made, given back where they came to nothing."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from accounts.keys.caller import Allowances, Caller
from accounts.limits.ai_calls import (
    AiCallReservation,
    ai_quota_refusal,
    give_back_ai_call,
    look_at_ai_calls,
    reserve_ai_call,
)
from accounts.models import AiUsage
from tests.factories import NOON, make_account
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.usefixtures("transactional_db")
MIDNIGHT = datetime(2026, 11, 19, tzinfo=UTC)
CALLER = Caller(1, 1, "somebody", Allowances("pro", 120, 5, 20), None, False)
CROWD = 40


def reserved(account_id: int, limit: int = 5, now: datetime = NOON) -> AiCallReservation:
    reservation = reserve_ai_call(account_id, limit, now)
    assert reservation is not None
    return reservation


def test_reserving_counts_at_once() -> None:
    account = make_account()

    standing = reserved(account.pk).standing

    assert (standing.used, standing.remaining, standing.limit) == (1, 4, 5)
    assert look_at_ai_calls(account.pk, 5, NOON) == standing


def test_day_that_is_used_up_reserves_nothing() -> None:
    account = make_account()
    reserved(account.pk, limit=1)

    assert reserve_ai_call(account.pk, 1, NOON) is None
    assert look_at_ai_calls(account.pk, 1, NOON).remaining == 0


def test_what_was_given_back_can_be_reserved_again() -> None:
    account = make_account()
    reservation = reserved(account.pk, limit=1)

    assert give_back_ai_call(reservation).remaining == 1
    assert reserved(account.pk, limit=1).standing.remaining == 0


def test_call_goes_back_to_the_day_it_was_taken_from() -> None:
    account = make_account()
    late = reserved(account.pk, now=MIDNIGHT - timedelta(milliseconds=1))
    reserved(account.pk, now=MIDNIGHT)

    give_back_ai_call(late)

    used = dict(AiUsage.objects.filter(account=account).values_list("day", "used"))
    assert used == {NOON.date(): 0, MIDNIGHT.date(): 1}


def test_giving_back_too_often_makes_no_calls() -> None:
    account = make_account()
    reservation = reserved(account.pk)
    for _ in range(3):
        give_back_ai_call(reservation)

    assert look_at_ai_calls(account.pk, 5, NOON).used == 0


def test_lowered_limit_leaves_nothing_and_not_less() -> None:
    account = make_account()
    for _ in range(3):
        reserved(account.pk)

    assert look_at_ai_calls(account.pk, 2, NOON).remaining == 0
    assert reserve_ai_call(account.pk, 2, NOON) is None


@pytest.mark.parametrize(
    ("now", "wait"),
    [
        (NOON, "43200"),
        (MIDNIGHT - timedelta(seconds=1), "1"),
        (MIDNIGHT - timedelta(microseconds=1), "1"),
        (MIDNIGHT - timedelta(seconds=1, milliseconds=1), "2"),
        (MIDNIGHT, "86400"),
    ],
)
def test_wait_is_rounded_up_to_the_next_midnight(now: datetime, wait: str) -> None:
    standing = look_at_ai_calls(make_account().pk, 20, now)

    assert ai_quota_refusal(standing, CALLER, now).headers["Retry-After"] == wait


def test_crowd_at_midnight_gets_each_day_once() -> None:
    """Half of it is just before midnight, the other half just after."""
    account_id = make_account().pk
    ready = threading.Barrier(CROWD)

    def call(number: int) -> datetime | None:
        now = MIDNIGHT + timedelta(milliseconds=number - CROWD // 2)
        try:
            ready.wait(PATIENCE_S)
            return now if reserve_ai_call(account_id, 5, now) else None
        finally:
            connection.close()

    with ThreadPoolExecutor(CROWD) as pool:
        given = [now.date() for now in pool.map(call, range(CROWD)) if now is not None]

    assert [given.count(day) for day in (NOON.date(), MIDNIGHT.date())] == [5, 5]
    assert AiUsage.objects.count() == 2
