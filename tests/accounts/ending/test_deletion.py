"""A deleted account opens nothing, and no table names its owner but where that is said."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from allauth.usersessions.models import UserSession
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.models import Session
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client

from accounts.deletion import DeletionRefused, delete_account
from accounts.keys.issuing import issue_key
from accounts.models import Account, ApiKey, TierRequest, Usage, User
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from news.models import ItemScore
from signals_feed.ledger.ledger import LedgerEntry
from signals_feed.ledger.verify import verify
from signals_feed.models import Signal
from signals_feed.publishers import lookup
from tests.accounts.ending.canary import MAIL, NAME, make_canary, naming
from tests.accounts.login.factors import PASSWORD
from tests.factories import make_account, make_news, make_user
from tests.signals_feed.published_signals import make_published, make_published_by_name

pytestmark = [pytest.mark.django_db, pytest.mark.services]
account = pytest.fixture(make_canary, name="account")


def test_no_table_names_who_is_gone_and_keys_of_others_go_on(account: Account) -> None:
    """Nor does what the service did, under a name that somebody had before it was reserved."""
    other, address = make_account(), EmailAddress.objects.create(user=account.user, email=f"second.{MAIL}")
    issue_key(other, "mine", by="me")
    about = {"object_id": str(address.pk), "object_repr": str(address)}
    kind = ContentType.objects.get_for_model(EmailAddress)
    LogEntry.objects.create(user=make_user("chief"), action_flag=2, content_type=kind, **about)
    demo, key = make_account(make_user("demo")), account.keys.get()
    service = ControlEvent.objects.publish(EventKind.INSTRUMENTS_CHANGED, by="demo")
    issue_key(demo, "laptop", by="demo")
    delete_account(demo.user)
    assert list(ControlEvent.objects.filter(by="demo")) == [service]
    before = ControlEvent.objects.newest()
    assert before is not None
    assert delete_account(account.user) == ""
    assert naming(NAME, MAIL) == {}
    assert not User.objects.filter(pk=account.user_id).exists()
    for model in (TierRequest, Usage, UserSession, Session):
        assert not model._default_manager.exists(), model
    assert [key.account for key in ApiKey.objects.all()] == list(Account.objects.all()) == [other]
    told = list(ControlEvent.objects.filter(position__gt=before.position).order_by("position"))
    kinds = [event.kind for event in told]
    assert kinds[-2:] == [EventKind.KEY_REVOKED, EventKind.ACCOUNT_CHANGED]
    assert EventKind.SESSION_ENDED in kinds
    assert told[-2].facts == {"account": account.pk, "key": key.pk, "prefix": key.prefix, "mark": key.mark}


def test_a_publisher_stays_whole_under_a_pseudonym(account: Account) -> None:
    user = account.user
    open_signal = make_published(user=user)
    scorecard = lookup.find(NAME)
    pseudonym = delete_account(user)
    assert pseudonym == f"deleted-{user.pk}"
    assert naming(NAME, MAIL) == {}
    assert f'"user":"publisher-{user.pk}"' in LedgerEntry.objects.get().payload
    assert verify().fault == ""
    assert Signal.objects.get(pk=open_signal.pk).status == "active"
    found = lookup.find(pseudonym)
    assert scorecard is not None
    assert found == scorecard._replace(name=pseudonym, is_demo=False)
    kept = User.objects.get(pk=user.pk)
    assert (kept.is_active, kept.has_usable_password(), kept.email) == (False, False, "")


def test_entries_of_the_release_before_keep_the_name_and_those_since_do_not(account: Account) -> None:
    before = make_published_by_name(user=account.user)
    make_published(user=account.user)
    delete_account(account.user)
    (row,) = naming(NAME, MAIL).pop("signals_feed_ledgerentry")
    assert str(before.pk) in row
    assert naming(NAME, MAIL).keys() == {"signals_feed_ledgerentry"}
    assert verify().fault == ""


@pytest.mark.parametrize("publish", [make_published, make_published_by_name])
def test_nobody_takes_the_name_of_a_publisher_who_is_gone(
    account: Account, publish: Callable[..., Signal]
) -> None:
    publish(user=account.user)
    delete_account(account.user)
    for name in (NAME, NAME.swapcase()):
        assert "looks like that of a publisher" in sign_up(name), name
    for name in ("deleted-7", "Deleted-me", "Publisher-7"):
        assert RESERVED in sign_up(name), name
    assert not User.objects.filter(email="new@example.com").exists()


RESERVED = "This username is reserved"


def sign_up(name: str) -> str:
    form = {"username": name, "email": "new@example.com", "password1": PASSWORD, "password2": PASSWORD}
    return Client().post("/accounts/signup/", form).text


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["demo", "Market", "Staff", "Admin", "adm1n", "tickwire.", "T1CKW1RE", "my-tick_wire"], RESERVED),
        (["\u0430urora_fx"], "other letters can look like these"),
        # No page could have them in its address.
        ([".", "..", "-", "_@_"], "Use at least one letter or digit."),
    ],
)
def test_nobody_signs_up_under_a_name_that_misleads(names: list[str], words: str) -> None:
    assert [name for name in names if words not in sign_up(name)] == []
    assert not User.objects.exists()


def test_what_staff_did_stays_on_record(account: Account) -> None:
    user = account.user
    LogEntry.objects.create(user=user, action_flag=2, object_repr="EURUSD")
    item = make_news()
    ItemScore.objects.create(item=item, title=item.title, score=0.1, model="staff", by=NAME)
    pseudonym = delete_account(user)
    assert LogEntry.objects.get(object_repr="EURUSD").user.username == pseudonym
    # Scores can only be added, which the page says.
    assert naming(NAME, MAIL).keys() == {"news_itemscore"}


@pytest.mark.parametrize("name", ["fields", "a", "Tier", "changed"])
def test_a_name_of_the_log_s_own_words_changes_no_record(name: str) -> None:
    user = make_user(name)
    about = {"user": make_user("boss"), "action_flag": 2, "object_id": str(user.pk)}
    kind = ContentType.objects.get_for_model(User)
    by_form = json.dumps([{"changed": {"fields": ["Tier"], "name": "user", "object": name}}])
    for message in (by_form, "Tier Premium, as asked for."):
        LogEntry.objects.create(content_type=kind, object_repr=name, change_message=message, **about)
    delete_account(user)
    told = LogEntry.objects.order_by("pk")
    assert [entry.object_repr for entry in told] == [f"deleted-{about['object_id']}"] * 2
    assert told[0].get_change_message() == f"Changed Tier for user “deleted-{about['object_id']}”."
    assert told[1].get_change_message() == "Tier Premium, as asked for."


def test_the_last_superuser_and_the_demo_stay() -> None:
    boss = make_user("boss", is_superuser=True, is_staff=True)
    make_user("gone", is_superuser=True, is_active=False)
    with pytest.raises(DeletionRefused, match="last superuser"):
        delete_account(boss)
    make_user("other", is_superuser=True)
    delete_account(boss)
    with pytest.raises(DeletionRefused, match="demo"):
        delete_account(make_account(is_demo=True).user)


def test_the_command_asks_first(account: Account, capsys: Any) -> None:
    with pytest.raises(CommandError, match="--yes"):
        call_command("delete_account", NAME)
    with pytest.raises(CommandError, match="no user"):
        call_command("delete_account", "nobody", "--yes")
    call_command("delete_account", NAME, "--yes")
    # Nothing stays of somebody who never published.
    assert "publisher-" not in capsys.readouterr().out
    assert naming(NAME, MAIL) == {}
