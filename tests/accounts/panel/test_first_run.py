"""The first steps: each is ticked by what happened, and the commands carry the key as a variable."""

from __future__ import annotations

import shlex

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import Account, ApiKey, Usage
from accounts.panel.first_run import first_run_of, sample
from tests.accounts.browser import logged_in
from tests.factories import NOON, make_account, make_key

pytestmark = pytest.mark.django_db
CARD = "/settings/first-run"
NAVIGATION = {"Sec-Fetch-Mode": "navigate"}


@pytest.fixture
def account() -> Account:
    return make_account()


@pytest.fixture
def page(account: Account, monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.setattr(sample, "symbol", lambda: "EURUSD")
    return logged_in(account.user)


def call(account: Account) -> None:
    ApiKey.objects.filter(account=account).update(last_used_at=timezone.now())


def stream(account: Account) -> None:
    """As it is counted when a key opens one; those of our own pages are not."""
    Usage.objects.create(account=account, span="day", starts_at=NOON, streams=1)


def test_new_account_has_every_step_before_it(account: Account) -> None:
    assert first_run_of(account) == (False, False, False)


def test_each_step_is_ticked_by_what_happened(account: Account) -> None:
    make_key(account)
    assert first_run_of(account) == (True, False, False)
    call(account)
    assert first_run_of(account) == (True, True, False)
    stream(account)
    assert first_run_of(account).is_over


def test_what_another_account_did_ticks_nothing(account: Account) -> None:
    other = make_account()
    make_key(other)
    call(other)
    stream(other)
    assert first_run_of(account).done == 0


def test_an_ended_key_counts(account: Account) -> None:
    make_key(account, revoked_at=timezone.now(), last_used_at=timezone.now())
    assert first_run_of(account).done == 2


def test_whoever_is_set_up_sees_no_steps(page: Client, account: Account) -> None:
    assert "Get started" in page.get("/settings/keys").text
    make_key(account)
    call(account)
    stream(account)
    assert "Get started" not in page.get("/settings/keys").text
    assert "data-over" in page.get(CARD).text


def test_commands_can_be_pasted_and_hold_no_key(page: Client, account: Account) -> None:
    secret = make_key(account)
    answer = page.get(CARD)
    commands = answer.context["commands"]
    assert secret not in answer.text
    assert words_of(commands["call"]) == [
        *("curl", "-H", "X-API-Key: $TICKWIRE_KEY", "http://127.0.0.1:8000/api/market/EURUSD/quote"),
    ]
    words = words_of(commands["stream"])
    assert words[:6] == [
        "npx",
        "wscat",
        "-c",
        "ws://127.0.0.1:8000/ws/market",
        "-H",
        "X-API-Key: $TICKWIRE_KEY",
    ]
    assert words[-1] == '{"action": "subscribe", "symbols": ["EURUSD"]}'


def words_of(command: str) -> list[str]:
    """As a shell reads it, which takes a backslash at the end of a line for no more than a break."""
    return shlex.split(command.replace("\\\n", ""))


def test_behind_https_the_socket_is_encrypted_too(account: Account) -> None:
    client = Client()
    client.force_login(account.user)
    answer = client.get(CARD, secure=True, headers={"host": "localhost"})
    assert "wss://localhost/ws/market" in answer.context["commands"]["stream"]


def test_whoever_opens_the_card_by_its_address_gets_the_page(page: Client) -> None:
    assert page.get(CARD, headers=NAVIGATION)["Location"] == "/settings/keys"


def test_the_keys_below_are_told_when_they_were_used(page: Client, account: Account) -> None:
    make_key(account)
    (key,) = account.keys.all()
    assert f'<dd data-last-used="{key.pk}">never</dd>' in page.get("/settings/keys").text
    assert "data-last-used" not in page.get(CARD).text
    call(account)
    assert f'<p data-last-used="{key.pk}"><time datetime=' in page.get(CARD).text


def test_steps_are_for_those_who_are_logged_in() -> None:
    assert Client().get(CARD)["Location"].startswith("/accounts/login/")
