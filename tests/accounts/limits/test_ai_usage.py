from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta

import pytest
from django.db import connection

from accounts.models import AiUsage
from core.daily_allowance import spend
from tests.factories import make_account
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.usefixtures("transactional_db"), pytest.mark.services]
TODAY = date(2026, 11, 18)
CALLERS = 50


def spend_at_once(account_id: int, day: date, limit: int, callers: int = CALLERS) -> int:
    """How many of so many simultaneous calls the day's allowance covered."""
    ready = threading.Barrier(callers)

    def spend_one() -> bool:
        try:
            ready.wait(PATIENCE_S)
            return spend(AiUsage.objects, limit, account_id=account_id, day=day)
        finally:
            connection.close()

    with ThreadPoolExecutor(callers) as pool:
        return sum(done.result(PATIENCE_S) for done in [pool.submit(spend_one) for _ in range(callers)])


def test_fifty_calls_at_once_spend_exactly_the_limit() -> None:
    account = make_account()
    assert spend_at_once(account.pk, TODAY, 5) == 5
    assert AiUsage.used_on(account.pk, TODAY) == 5


def test_next_day_starts_anew_and_once() -> None:
    account = make_account()
    assert spend_at_once(account.pk, TODAY, 5) == 5
    assert spend_at_once(account.pk, TODAY + timedelta(days=1), 5) == 5
    assert AiUsage.objects.count() == 2


def test_accounts_do_not_share_an_allowance() -> None:
    first, second = make_account(), make_account()
    assert spend(AiUsage.objects, 1, account_id=first.pk, day=TODAY)
    assert not spend(AiUsage.objects, 1, account_id=first.pk, day=TODAY)
    assert spend(AiUsage.objects, 1, account_id=second.pk, day=TODAY)


def test_allowance_of_nothing_covers_nothing() -> None:
    assert not spend(AiUsage.objects, 0, account_id=make_account().pk, day=TODAY)


def test_nothing_is_used_on_a_day_without_a_row() -> None:
    assert AiUsage.used_on(make_account().pk, TODAY) == 0
