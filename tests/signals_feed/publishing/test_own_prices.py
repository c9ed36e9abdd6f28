"""Nobody publishes on prices that they can make, or could make within the last thirty days."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from datetime import timedelta
from decimal import Decimal

import pytest
import time_machine
from django.contrib.auth.models import Group, Permission
from django.core.management import CommandError, call_command

from accounts.deletion import delete_account
from accounts.models import Account, User
from accounts.rights import PowerRefused
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from market.models import FormerPriceRight, IngestKey
from market.own_prices import POWERS, forget_old, makes_price, note_deciders, powers
from market.push.keys import allow_symbols, issue_ingest_key, revoke_ingest_key
from signals_feed.models import Signal
from signals_feed.publishing.actions import publish
from signals_feed.rules import Quoted, SignalRefused, SignalTerms
from tests.accounts.back_office.office import Office, add_to, change, text_of
from tests.factories import NOON, make_account, make_instrument, make_user
from tests.market.ticking import NOON_MS
from tests.signals_feed.published_signals import make_published, make_publisher

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock", "own_market"), pytest.mark.services]
BUY = SignalTerms("EURUSD", "buy", Decimal("1.0810"), Decimal("1.0900"))
QUOTE = Quoted(Decimal("1.0841"), Decimal("1.0843"), NOON_MS, "e1", 7)
ALMOST = timedelta(days=30) - timedelta(seconds=1)


@pytest.fixture(autouse=True)
def _instruments(db: None) -> None:
    make_instrument("EURUSD")
    make_instrument("GBPUSD")


@pytest.fixture
def anna(db: None) -> User:
    return make_account(make_publisher()).user


def issue(user: User, symbols: str) -> IngestKey:
    return issue_ingest_key("desk", symbols, by="test", account=Account.objects.get(user=user))[0]


@pytest.mark.parametrize(
    ("symbols", "code"), [("", "own_price"), ("GBPUSD EURUSD", "own_price"), ("GBPUSD", "")]
)
def test_owner_of_a_key_publishes_nothing_that_it_may_price(anna: User, symbols: str, code: str) -> None:
    issue(anna, symbols)
    with pytest.raises(SignalRefused) if code else nullcontext() as refused:
        publish(BUY, anna, QUOTE)
    assert (refused.value.code if refused else "") == code
    assert Signal.objects.exists() is not bool(code)


def end_key(key: IngestKey) -> None:
    assert revoke_ingest_key(key, by="test")


def narrow(key: IngestKey) -> None:
    allow_symbols(key, "GBPUSD", by="test")


@pytest.mark.parametrize("end", [end_key, narrow])
def test_thirty_days_after_a_key_could_price_it_its_owner_publishes_again(
    anna: User, end: Callable[[IngestKey], None], clock: time_machine.Traveller
) -> None:
    end(issue(anna, ""))
    clock.move_to(NOON + ALMOST)
    assert makes_price(anna, "EURUSD")
    clock.move_to(NOON + timedelta(days=30))
    assert not makes_price(anna, "EURUSD")
    assert makes_price(anna, "GBPUSD") == (end is narrow)


def test_nothing_of_a_revoked_key_is_changed_which_would_hide_what_it_priced(anna: User) -> None:
    key = issue(anna, "EURUSD")
    end_key(key)
    with pytest.raises(PowerRefused):
        allow_symbols(key, "GBPUSD", by="test")
    assert makes_price(anna, "EURUSD")


def test_keys_end_with_the_account_of_their_owner_who_may_come_back_as_somebody_else(anna: User) -> None:
    keys = [issue(anna, symbols) for symbols in ("", "GBPUSD")]
    others, _ = issue_ingest_key("desk", by="test")
    delete_account(anna)
    assert list(IngestKey.objects.filter(revoked_at=None)) == [others]
    told = ControlEvent.objects.filter(kind=EventKind.INGEST_KEY_REVOKED)
    assert {event.facts["key"] for event in told} == {key.pk for key in keys}


EACH_POWER = [f"{app}.{codename}" for app, codenames in POWERS.items() for codename in codenames]


@pytest.mark.parametrize("power", [*EACH_POWER, "signals_feed.change_signal"])
def test_staff_who_decide_about_prices_publish_nothing(anna: User, power: str) -> None:
    app, _, codename = power.partition(".")
    permission = Permission.objects.get(content_type__app_label=app, codename=codename)
    anna.user_permissions.add(permission)
    assert not makes_price(anna, "EURUSD")
    User.objects.filter(pk=anna.pk).update(is_staff=True)
    assert makes_price(anna, "EURUSD") == (power in EACH_POWER)


def lose_permission(user: User) -> None:
    user.user_permissions.clear()


def leave_group(user: User) -> None:
    user.groups.set([])


def shrink_group(user: User) -> None:
    Group.objects.get(name="desk").permissions.set([])


def end_group(user: User) -> None:
    Group.objects.get(name="desk").delete()


def lose_flags(user: User) -> None:
    user.is_staff = user.is_superuser = False
    user.save()


def lose_flags_unheard(user: User) -> None:
    """Between two looks of the engine, that is within the hour."""
    note_deciders()
    User.objects.filter(pk=user.pk).update(is_staff=False, is_superuser=False)


@pytest.mark.parametrize(
    ("has", "lose"),
    [
        ("permission", lose_permission),
        *(("group", lose) for lose in (leave_group, shrink_group, end_group, lose_flags)),
        *(("everything", lose) for lose in (lose_flags, lose_flags_unheard)),
    ],
)
def test_powers_that_were_lost_count_for_thirty_days(
    anna: User, has: str, lose: Callable[[User], None], clock: time_machine.Traveller
) -> None:
    User.objects.filter(pk=anna.pk).update(is_staff=True, is_superuser=has == "everything")
    anna.refresh_from_db()
    if has == "permission":
        anna.user_permissions.set(powers())
    if has == "group":
        group = Group.objects.create(name="desk")
        group.permissions.set(powers())
        anna.groups.add(group)
    clock.move_to(NOON + timedelta(days=1))
    lose(anna)
    clock.move_to(NOON + timedelta(days=1) + ALMOST)
    forget_old()
    assert makes_price(anna, "EURUSD")
    clock.move_to(NOON + timedelta(days=31))
    assert not makes_price(anna, "EURUSD")
    forget_old()
    assert not FormerPriceRight.objects.filter(known_at__lte=NOON + timedelta(days=1)).exists()


def test_no_key_is_issued_widened_or_given_to_somebody_with_open_signals_there(anna: User) -> None:
    make_published(user=anna)
    narrow_key = issue(anna, "GBPUSD")
    nobodys, _ = issue_ingest_key("desk", by="test")
    for grant in (
        lambda: issue(anna, "EURUSD"),
        lambda: allow_symbols(narrow_key, "", by="test"),
        lambda: allow_symbols(nobodys, "", by="test", account=anna.account),
    ):
        with pytest.raises(PowerRefused, match="open signals on EURUSD"):
            grant()
    with pytest.raises(CommandError, match="open signals on EURUSD"):
        call_command("issue_ingest_key", "desk", "--owner", anna.username)
    assert [*IngestKey.objects.values_list("symbols", "account")] == [("", None), ("GBPUSD", anna.account.pk)]


def test_back_office_gives_no_right_to_make_prices_to_somebody_with_open_signals(anna: User) -> None:
    make_published(user=anna)
    boss = Office(make_user("boss", is_staff=True, is_superuser=True))
    role = Group.objects.create(name="desk")
    User.objects.filter(pk=anna.pk).update(is_staff=True)
    anna.groups.add(role)
    nobodys, _ = issue_ingest_key("desk", by="test")
    own = {"username": anna.username, "is_active": "on", "is_staff": "on", "groups": [role.pk]}
    given = [permission.pk for permission in powers()]
    for url, fields in (
        (change(anna), own | {"is_superuser": "on"}),
        (change(anna), own | {"user_permissions": given[:1]}),
        (change(role), {"name": role.name, "permissions": given[:1]}),
        (change(nobodys), {"owner": anna.username, "symbols": ""}),
        (add_to(IngestKey), {"answered": "1", "name": "desk", "owner": anna.username}),
    ):
        assert "has open signals on EURUSD" in text_of(boss.post(url, **fields)), (url, fields)
    assert not makes_price(anna, "EURUSD")
