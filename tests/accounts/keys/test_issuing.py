from __future__ import annotations

from datetime import timedelta

import pytest
import time_machine
from django.conf import settings
from django.utils import timezone

from accounts.key_text import digest_of
from accounts.keys.caller import find_caller
from accounts.keys.issuing import (
    DAY,
    MAX_USABLE_KEYS,
    MOST_KEYS_A_DAY,
    TooManyKeys,
    issue_key,
    revoke_key,
    roll_key,
)
from accounts.limits.tiers import change_tier, save_tier, save_user_access
from accounts.models import Account, ApiKey, Tier
from accounts.open_streams.registry import MOST_CLOSED_A_DAY, TooManyClosed, close_stream
from core.events.kinds import EventKind
from tests.accounts.back_office.office import published
from tests.factories import make_account

pytestmark = [pytest.mark.django_db, pytest.mark.services]


@pytest.fixture
def account() -> Account:
    return make_account()


def opens(secret: str) -> bool:
    return find_caller([digest_of(secret, settings.KEY_PEPPER)]) is not None


def test_every_act_is_told(account: Account) -> None:
    key, _ = issue_key(account, "bot", by="test")
    successor, secret = roll_key(key, overlap_hours=1, by="test")
    # Revoking twice says so, and is told once.
    assert [revoke_key(successor, by="test"), revoke_key(successor, by="test")] == [True, False]
    assert not opens(secret)
    change_tier(account, Tier.objects.get(name="pro"), by="test")
    save_tier(account.tier, by="test")
    save_user_access(account, by="test")
    kinds = [
        *[EventKind.KEY_ISSUED, EventKind.KEY_ISSUED, EventKind.KEY_ROLLED, EventKind.KEY_REVOKED],
        *[EventKind.ACCOUNT_CHANGED, EventKind.TIER_CHANGED, EventKind.ACCOUNT_CHANGED],
    ]
    assert published() == [(kind, "test") for kind in kinds]


def test_account_holds_no_more_than_its_number_of_usable_keys(account: Account) -> None:
    made = [issue_key(account, "bot", by="test")[0] for _ in range(MAX_USABLE_KEYS)]
    with pytest.raises(TooManyKeys):
        issue_key(account, "one too many", by="test")
    with pytest.raises(TooManyKeys):
        roll_key(made[1], overlap_hours=24, by="test")
    assert ApiKey.objects.get(pk=made[1].pk).expires_at is None
    revoke_key(made[0], by="test")
    issue_key(account, "in its place", by="test")


def test_account_is_given_no_more_than_its_number_of_keys_a_day(account: Account) -> None:
    began_at = timezone.now()
    with time_machine.travel(began_at, tick=False):
        key, _ = issue_key(account, "bot", by="test")
        for _ in range(MOST_KEYS_A_DAY - 1):
            key, _ = roll_key(key, overlap_hours=0, by="test")
        told = len(published())
        with pytest.raises(TooManyKeys, match="100 keys .* tomorrow"):
            roll_key(key, overlap_hours=0, by="test")
        with pytest.raises(TooManyKeys, match="can be revoked at any time"):
            issue_key(account, "another", by="test")
        assert (account.keys.count(), len(published())) == (MOST_KEYS_A_DAY, told)
        issue_key(make_account(), "of somebody else", by="test")
    with time_machine.travel(began_at + DAY, tick=False):
        roll_key(key, overlap_hours=0, by="test")


def test_account_closes_no_more_than_its_number_of_streams_a_day(account: Account) -> None:
    began_at = timezone.now()
    with time_machine.travel(began_at, tick=False):
        for number in range(MOST_CLOSED_A_DAY):
            close_stream(account, "/ws/market", float(number), by="test")
        with pytest.raises(TooManyClosed, match="revoke its key"):
            close_stream(account, "/ws/market", 1.0, by="test")
        assert len(published()) == MOST_CLOSED_A_DAY
    with time_machine.travel(began_at + DAY, tick=False):
        close_stream(account, "/ws/market", 1.0, by="test")


def test_rolled_key_works_for_the_overlap_and_then_no_more(account: Account) -> None:
    key, old = issue_key(account, "bot", by="test")
    assert key.digest == digest_of(old, settings.KEY_PEPPER)
    assert not [value for value in vars(key).values() if old[16:] in str(value)]
    rolled_at = timezone.now()
    with time_machine.travel(rolled_at, tick=False):
        successor, new = roll_key(key, overlap_hours=72, by="test")
        # Once.
        with pytest.raises(ValueError, match="active"):
            roll_key(key, overlap_hours=72, by="test")
        assert (opens(old), opens(new)) == (True, True)
    with time_machine.travel(rolled_at + timedelta(hours=72, seconds=-1), tick=False):
        assert (opens(old), opens(new)) == (True, True)
    with time_machine.travel(rolled_at + timedelta(hours=72), tick=False):
        assert (opens(old), opens(new)) == (False, True)
    assert successor.name == "bot"
    account.user.is_active = False
    account.user.save()
    assert not opens(new)


@pytest.mark.parametrize("hours", [-1, 73, float("nan")])
def test_overlap_outside_0_to_72_hours_changes_nothing(account: Account, hours: int) -> None:
    key, _ = issue_key(account, "bot", by="test")
    with pytest.raises(ValueError, match="0 to 72"):
        roll_key(key, overlap_hours=hours, by="test")
    assert published() == [(EventKind.KEY_ISSUED, "test")]
