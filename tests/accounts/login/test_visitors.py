"""Where the terminal is public, a visitor has an account of their own, without a login."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from accounts.keys.caller import Caller, find_browser_caller, read_browser_token
from accounts.login import sessions
from accounts.models import Account, PageSession, User
from core.addresses import network_of
from core.events.outbox import ControlEvent
from demo.seeding import remove
from tests.accounts.browser import ask, browser, token_of
from tests.factories import make_account, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.services]
LONG_AGO = timedelta(days=1, minutes=1)


@pytest.fixture(autouse=True)
def _demo(settings: Settings) -> None:
    settings.DEMO = settings.PUBLIC_TERMINAL = True


def caller_of(client: Client) -> Caller:
    token = read_browser_token(token_of(client))
    assert token is not None
    caller = find_browser_caller(token.page_session)
    assert caller is not None
    return caller


def age(account_id: int, by: timedelta = LONG_AGO, *, is_used: bool = False) -> None:
    then = timezone.now() - by
    Account.objects.filter(pk=account_id).update(created_at=then)
    if not is_used:
        PageSession.objects.filter(account=account_id).update(last_used_at=then)


@pytest.mark.parametrize("is_demo", [False, True])
def test_visitor_has_the_free_tier(settings: Settings, is_demo: bool) -> None:
    settings.DEMO = is_demo
    caller = caller_of(browser())
    assert (caller.allowances.tier, caller.allowances.requests, caller.is_demo) == ("free", 120, False)


def test_looking_makes_no_account_and_each_browser_that_asks_has_its_own() -> None:
    first, second = browser(), browser()
    first.get("/docs/streams")
    first.get("/page-token")
    assert Account.objects.count() == 0
    callers = [caller_of(client) for client in (first, first, second)]
    assert callers[0].account_id == callers[1].account_id != callers[2].account_id
    assert Account.objects.count() == 2
    # They stay strangers.
    assert not User.objects.get(account=callers[0].account_id).has_usable_password()
    assert first.get("/settings/keys").status_code == 302


def test_visitor_is_nobody_once_logged_in_or_once_the_demo_is_over(
    settings: Settings,
) -> None:
    token, client = read_browser_token(token_of(browser())), browser()
    visitor, users = read_browser_token(token_of(client)), {make_user("ada"), make_user("without an account")}
    client.force_login(make_account(User.objects.get(username="ada")).user)
    assert caller_of(client).username == "ada"
    assert visitor is not None
    assert find_browser_caller(visitor.page_session) is None
    settings.PUBLIC_TERMINAL = False
    assert token is not None
    assert find_browser_caller(token.page_session) is None
    remove(lambda told: None)
    assert set(User.objects.all()) == users


def test_one_address_makes_60_accounts_an_hour_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sessions.MOST_AN_HOUR == 60
    monkeypatch.setattr(sessions, "MOST_AN_HOUR", 2)
    known = browser()
    for client in (known, browser()):
        token_of(client)
    refused = ask(browser())
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "too_many_visitors")
    assert int(refused["Retry-After"]) > 0
    assert Account.objects.count() == User.objects.count() == 2
    # Whoever has one keeps it, and other addresses have their own bound.
    for client in (known, browser("192.0.2.7")):
        token_of(client)
    Account.objects.update(created_at=timezone.now() - timedelta(minutes=61))
    token_of(browser())


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8::ffff:1", "2001:db8::/64"),
        ("2001:db8:0:1::1", "2001:db8:0:1::/64"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("testclient", "unknown"),
    ],
)
def test_an_ipv6_subscriber_is_one_address(address: str, network: str) -> None:
    assert network_of(address) == network


def test_who_was_not_here_for_a_day_is_forgotten_when_the_next_one_comes() -> None:
    gone, used, fresh = (caller_of(browser()).account_id for _ in range(3))
    age(gone)
    age(used, is_used=True)
    customer = make_account(make_user("ada"))
    age(customer.pk)
    caller_of(browser())
    left = set(Account.objects.values_list("pk", flat=True))
    assert gone not in left
    assert {used, fresh, customer.pk} < left
    assert not User.objects.filter(account=None).exists()
    assert ControlEvent.objects.get().facts == {"account": gone}


def test_browser_that_comes_back_too_late_gets_another_account_and_asking_is_use() -> None:
    clients = browser(), browser()
    before = [caller_of(client).account_id for client in clients]
    for account in before:
        age(account)
    token_of(clients[1])
    sessions.prune()
    after = [caller_of(client).account_id for client in clients]
    assert after[0] != before[0]
    assert after[1] == before[1]
