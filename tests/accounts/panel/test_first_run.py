"""The first steps: each is ticked by what happened, and the commands carry the key as a variable."""

from __future__ import annotations

import shlex

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import Account, ApiKey, Usage
from accounts.panel.keys import FirstRun, first_run_of
from tests.accounts.browser import logged_in
from tests.factories import NOON, make_account, make_key

pytestmark = pytest.mark.django_db
CARD = "/settings/first-run"


@pytest.fixture
def account() -> Account:
    return make_account()


@pytest.fixture
def page(account: Account) -> Client:
    return logged_in(account.user)


def call(account: Account) -> None:
    ApiKey.objects.filter(account=account).update(last_used_at=timezone.now())


def stream(account: Account) -> None:
    """As it is counted when a key opens one; those of our own pages are not."""
    Usage.objects.create(account=account, span="day", starts_at=NOON, streams=1)


def test_each_step_is_ticked_by_what_happened_to_this_account(account: Account) -> None:
    other = make_account()
    make_key(other)
    call(other)
    stream(other)
    assert first_run_of(account) == FirstRun(False, False, False)
    make_key(account)
    assert first_run_of(account) == FirstRun(True, False, False)
    call(account)
    assert first_run_of(account) == FirstRun(True, True, False)
    # An ended key counts.
    account.keys.update(revoked_at=timezone.now())
    assert first_run_of(account).done == 2
    stream(account)
    assert first_run_of(account).is_over


def test_whoever_is_set_up_sees_no_steps(page: Client, account: Account) -> None:
    assert "Get started" in page.get("/settings/keys").text
    make_key(account)
    (key,) = account.keys.all()
    assert f'<dd data-last-used="{key.pk}">never</dd>' in page.get("/settings/keys").text
    assert "data-last-used" not in page.get(CARD).text
    call(account)
    # The keys below the card are told when they were used.
    assert f'<p data-last-used="{key.pk}"><time datetime=' in page.get(CARD).text
    stream(account)
    assert "Get started" not in page.get("/settings/keys").text
    assert "data-over" in page.get(CARD).text
    assert page.get(CARD, headers={"Sec-Fetch-Mode": "navigate"})["Location"] == "/settings/keys"


@pytest.mark.parametrize(("secure", "scheme"), [(False, "ws"), (True, "wss")])
def test_commands_can_be_pasted_and_hold_no_key(
    page: Client, account: Account, secure: bool, scheme: str
) -> None:
    secret = make_key(account)
    answer = page.get(CARD, secure=secure)
    assert secret not in answer.text
    host, header = "127.0.0.1:8000", ["-H", "X-API-Key: $TICKWIRE_KEY"]
    # A shell takes a backslash at the end of a line for no more than a break.
    commands = {
        name: shlex.split(text.replace("\\\n", "")) for name, text in answer.context["commands"].items()
    }
    quote = f"{scheme.replace('ws', 'http')}://{host}/api/market/EURUSD/quote"
    assert commands["call"] == ["curl", *header, quote]
    assert commands["stream"][:6] == ["npx", "wscat", "-c", f"{scheme}://{host}/ws/market", *header]
    assert commands["stream"][-1] == '{"action": "subscribe", "symbols": ["EURUSD"]}'
