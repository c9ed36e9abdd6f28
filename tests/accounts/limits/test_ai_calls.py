"""The AI calls of a UTC day: counted before they are made, given back where they came to nothing."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from accounts.limits.throttling import AiCallReservation, AiCallStanding
from accounts.models import AiUsage
from tests.factories import NOON, make_account
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.usefixtures("transactional_db"), pytest.mark.services, pytest.mark.pooled]
MIDNIGHT = datetime(2026, 11, 19, tzinfo=UTC)
CROWD = 40


def reserved(account_id: int, limit: int = 5, now: datetime = NOON) -> AiCallReservation:
    reservation = AiCallReservation.make(account_id, limit, now)
    assert reservation is not None
    return reservation


def test_reserving_counts_at_once_and_what_is_given_back_can_be_reserved_again() -> None:
    account, other = make_account().pk, make_account().pk
    assert AiCallStanding.of(account, 2, NOON).used == 0
    first, second = reserved(account, limit=2), reserved(account, limit=2)
    assert [(each.standing.used, each.standing.remaining) for each in (first, second)] == [(1, 1), (2, 0)]
    assert AiCallStanding.of(account, 2, NOON) == second.standing
    assert AiCallReservation.make(account, 2, NOON) is None
    assert reserved(other, limit=1).standing.remaining == 0
    # Giving back too often makes no calls.
    assert [first.give_back().remaining for _ in range(4)] == [1, 2, 2, 2]
    assert reserved(account, limit=2).standing.remaining == 1


def test_call_goes_back_to_the_day_it_was_taken_from() -> None:
    account = make_account()
    late = reserved(account.pk, now=MIDNIGHT - timedelta(milliseconds=1))
    reserved(account.pk, now=MIDNIGHT)

    late.give_back()

    used = dict(AiUsage.objects.filter(account=account).values_list("day", "used"))
    assert used == {NOON.date(): 0, MIDNIGHT.date(): 1}


@pytest.mark.parametrize("limit", [0, 2])
def test_lowered_limit_leaves_nothing_and_not_less(limit: int) -> None:
    account = make_account()
    for _ in range(3 if limit else 0):
        reserved(account.pk)

    assert AiCallStanding.of(account.pk, limit, NOON).remaining == 0
    assert AiCallReservation.make(account.pk, limit, NOON) is None


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
    standing = AiCallStanding.of(make_account().pk, 20, now)

    assert standing.refusal("pro", now).headers["Retry-After"] == wait


def test_crowd_at_midnight_gets_each_day_once() -> None:
    """Half of it is just before midnight, the other half just after."""
    account_id = make_account().pk
    ready = threading.Barrier(CROWD)

    def call(number: int) -> datetime | None:
        now = MIDNIGHT + timedelta(milliseconds=number - CROWD // 2)
        try:
            ready.wait(PATIENCE_S)
            return now if AiCallReservation.make(account_id, 5, now) else None
        finally:
            connection.close()

    with ThreadPoolExecutor(CROWD) as pool:
        given = [now.date() for now in pool.map(call, range(CROWD)) if now is not None]

    assert [given.count(day) for day in (NOON.date(), MIDNIGHT.date())] == [5, 5]
    assert AiUsage.objects.count() == 2
