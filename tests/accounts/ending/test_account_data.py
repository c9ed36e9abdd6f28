"""Whatever names a person is in the file that they take along, or is named here with the reason."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from typing import Any

import pytest
from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, Permission
from django.db.models import EmailField

from accounts.limits.tiers import ask_for_tier, decline_request
from accounts.models import Account, AiUsage, Tier, User
from accounts.own_data import account_data
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from market.own_prices import note
from market.push.keys import issue_ingest_key
from news.models import ItemScore
from signals_feed.publishers.requests import ask_to_publish
from signals_feed.publishers.requests import decline_request as decline_publishing
from tests.accounts.ending.canary import MAIL, NAME, make_canary, naming
from tests.factories import NOON, make_account, make_news, make_user
from tests.signals_feed.published_signals import make_published_by_name

pytestmark = pytest.mark.django_db
SECTIONS = {
    "accounts_user": ("person",),
    "accounts_user_groups": ("rights",),
    "accounts_user_user_permissions": ("rights",),
    "account_emailaddress": ("email_addresses",),
    "mfa_authenticator": ("second_factors",),
    "usersessions_usersession": ("sessions",),
    "accounts_account": ("account",),
    "accounts_apikey": ("keys",),
    "accounts_pagesession": ("page_sessions",),
    "accounts_usage": ("usage",),
    "accounts_aiusage": ("ai_usage",),
    "accounts_tierrequest": ("tier_requests", "tier_decisions"),
    "accounts_controlevent": ("events", "events_by"),
    "django_admin_log": ("log_about", "log_by"),
    "signals_feed_signal": ("signals",),
    "signals_feed_publisherrequest": ("publisher_requests", "publisher_decisions"),
    "news_itemscore": ("news_scores",),
    "market_ingestkey": ("ingest_keys",),
    "market_formerpriceright": ("price_rights",),
}
LEFT_OUT = {
    "signals_feed_ledgerentry": "everybody can read it, and it has the signals of that section",
    "signals_feed_heldname": "it has hashes of names alone",
}
COLUMNS = {"user_id", "account_id", "username", "by"}


@pytest.fixture
def account() -> Account:
    """They are staff too, and published under the last release."""
    account = make_canary()
    user, other = account.user, make_account(make_user("other-person"))
    user.groups.add(Group.objects.create(name="newsroom"))
    user.user_permissions.add(Permission.objects.get(codename="publish_signal"))
    AiUsage.objects.create(account=account, day=NOON.date(), used=3)
    wanted = ask_for_tier(other, Tier.objects.get(name="premium"), "please", by="other-person")
    decline_request(wanted, "Not yet, other-person.", by=NAME)
    asked = ask_to_publish(other, "please", by=other.user)
    decline_publishing(asked, "Not yet, other-person.", by=user)
    changes = json.dumps([{"changed": {"name": "user", "object": "other-person", "fields": ["Tier"]}}])
    about = {"object_id": str(other.user_id), "object_repr": "other-person", "change_message": changes}
    LogEntry.objects.create(user=user, action_flag=2, **about)
    item = make_news()
    ItemScore.objects.create(item=item, title=item.title, score=0.1, model="staff", by=NAME)
    ItemScore.objects.create(item=item, title=item.title, score=0.9, model="staff", by="boss")
    issue_ingest_key("desk", by="test", account=account)
    note(user)
    make_published_by_name(user=user)
    return account


def exported(user: User) -> dict[str, Any]:
    with zipfile.ZipFile(io.BytesIO(account_data.packed(user))) as file:
        found: dict[str, Any] = json.loads(file.read("account.json"))
        return found


def tables_of_people() -> Iterator[str]:
    """Those whose columns can name somebody, whether or not a row does."""
    for model in apps.get_models(include_auto_created=True):
        fields = model._meta.concrete_fields
        if any(
            field.related_model in (User, Account)
            or field.column in COLUMNS
            or str(field.column).endswith("_by")
            or isinstance(field, EmailField)
            for field in fields
        ):
            yield model._meta.db_table


def test_no_table_that_names_people_is_forgotten_and_what_does_is_in_their_file(account: Account) -> None:
    found = {*tables_of_people(), *naming(NAME, MAIL)}
    assert found == SECTIONS.keys() | LEFT_OUT.keys()
    data = exported(account.user)
    for table, sections in SECTIONS.items():
        for section in sections:
            assert data[section], f"{section} has nothing of {table}"


def test_what_staff_did_is_told_without_the_others_or_who_decided_about_them(account: Account) -> None:
    data = exported(account.user)
    assert [score["score"] for score in data["news_scores"]] == [0.1]
    assert [event["kind"] for event in data["events_by"]] == [
        EventKind.TIER_DECLINED,
        EventKind.PUBLISHING_DECLINED,
        EventKind.SIGNAL_PUBLISHED,
    ]
    assert [each["state"] for each in data["tier_decisions"]] == ["declined"]
    assert {row["group"] for row in data["rights"] if "group" in row} == {"newsroom"}
    (did,), (done,) = data["log_by"], data["log_about"]
    assert json.loads(did["change_message"])[0]["changed"]["fields"] == ["Tier"]
    assert done["object_repr"] == NAME
    by_staff = {event["kind"] for event in data["events"] if event["by"] == "staff"}
    assert {EventKind.TIER_DECLINED, EventKind.PUBLISHING_DECLINED} <= by_staff
    assert NAME in {event["by"] for event in data["events"]}
    assert not any(name in json.dumps(data) for name in ("other-person", "boss"))


def test_what_the_service_does_is_nobodys_to_take_along() -> None:
    """They signed up before the name was reserved, and may have no account."""
    user = make_user("demo")
    ControlEvent.objects.publish(EventKind.INSTRUMENTS_CHANGED, by="demo")
    assert exported(user)["events_by"] == []
    assert exported(make_account(user).user)["events_by"] == []
