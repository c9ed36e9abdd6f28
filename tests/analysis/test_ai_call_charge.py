"""An AI call that was counted when nobody waited for it any more costs nothing."""

from __future__ import annotations

import pytest

from accounts.models import Account, AiUsage
from analysis.ai_call_charge import CancellableReservation
from tests.factories import NOON, make_account

pytestmark = pytest.mark.django_db
LIMIT = 3


@pytest.fixture
def account() -> Account:
    return make_account()


def used(account: Account) -> int:
    return AiUsage.used_on(account.pk, NOON.date())


def test_call_in_time_is_counted_once(account: Account) -> None:
    reservation = CancellableReservation(account.pk, LIMIT, NOON).run()
    assert reservation is not None
    assert reservation.standing.used == used(account) == 1


def test_call_that_is_counted_too_late_is_given_back(account: Account) -> None:
    reserving = CancellableReservation(account.pk, LIMIT, NOON)
    assert reserving.give_up() is None
    assert reserving.run() is None
    assert used(account) == 0


def test_call_that_was_counted_in_the_last_moment_is_known(account: Account) -> None:
    reserving = CancellableReservation(account.pk, LIMIT, NOON)
    made = reserving.run()
    assert made is not None
    assert reserving.give_up() is made
