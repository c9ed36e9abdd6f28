"""What our own pages may ask for: an allowance of their own, the same on every tier."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from accounts.keys.caller import PAGE_REQUESTS, PAGE_STREAMS
from accounts.limits.tiers import change_tier
from accounts.models import Account, AiUsage
from tests.accounts.browser import browser, logged_in, token_of
from tests.client import Api, Server
from tests.contract.answers import refusal
from tests.factories import NOON, make_account, make_instrument, make_key, make_tier, make_tiers, make_user
from tests.patience import wait_until

pytestmark = pytest.mark.services

SYMBOLS = "/api/symbols"


@pytest.fixture(scope="module", autouse=True)
def rows(shared: Api) -> None:
    make_tiers()
    make_instrument("EURUSD")


@pytest.fixture
def account(shared: Api) -> Account:
    return make_account(make_user(password="a long walk 7"), tier="free")


@pytest.fixture
def api(shared_server: Server) -> Iterator[Api]:
    with Api(shared_server, "") as client:
        yield client


@pytest.fixture
def demo(settings: Any) -> None:
    settings.DEMO = settings.PUBLIC_TERMINAL = True


def left(api: Api, key: str) -> int:
    remaining: int = api.ask("/api/limits", key=key).json()["requests"]["remaining"]
    return remaining


def visitor(address: str) -> str:
    return token_of(browser(address))


def test_allowance_is_that_of_the_contract() -> None:
    assert (PAGE_REQUESTS, PAGE_STREAMS) == (120, 20)


def test_free_account_has_120_requests_a_minute_on_its_pages(api: Api, account: Account) -> None:
    token = token_of(logged_in(account.user))
    answers = [api.ask(SYMBOLS, key=token) for _ in range(PAGE_REQUESTS + 1)]
    assert [answer.status_code for answer in answers] == [200] * PAGE_REQUESTS + [429]
    assert "its pages 120 requests a minute" in refusal(answers[-1], 429, "rate_limit_exceeded")
    assert answers[0].headers["RateLimit-Policy"] == '"pages";q=120;w=60'


def test_premium_account_has_no_more_of_them(api: Api, shared: Api) -> None:
    token = token_of(logged_in(make_account(make_user(), tier="premium").user))
    assert api.ask(SYMBOLS, key=token).headers["X-RateLimit-Limit"] == "120"


def test_two_sessions_of_one_account_share_it(api: Api, account: Account) -> None:
    tokens = [token_of(logged_in(account.user)) for _ in range(2)]
    remaining = [api.ask(SYMBOLS, key=token).headers["X-RateLimit-Remaining"] for token in tokens]
    assert remaining == ["119", "118"]


def test_accounts_do_not_share_it(api: Api, account: Account) -> None:
    other = make_account(make_user(), tier="free")
    tokens = [token_of(logged_in(each.user)) for each in (account, other)]
    assert [api.ask(SYMBOLS, key=token).headers["X-RateLimit-Remaining"] for token in tokens] == ["119"] * 2


def test_keys_and_pages_cost_each_other_nothing(api: Api, account: Account) -> None:
    key, token = make_key(account), token_of(logged_in(account.user))
    for _ in range(3):
        api.ask(SYMBOLS, key=token)
    api.ask(SYMBOLS, key=key)
    assert (left(api, key), left(api, token)) == (60 - 1, 120 - 3)


def test_pages_go_on_when_the_keys_are_used_up(api: Api, shared: Api) -> None:
    account = make_account(make_user(), tier=make_tier("single", requests_per_minute=1))
    key, token = make_key(account), token_of(logged_in(account.user))
    assert [api.ask(SYMBOLS, key=key).status_code for _ in range(2)] == [200, 429]
    assert api.ask(SYMBOLS, key=token).status_code == 200


def test_tier_that_changes_leaves_the_pages_as_they_are(api: Api, account: Account) -> None:
    key, token = make_key(account), token_of(logged_in(account.user))
    change_tier(account, make_tier("narrow", requests_per_minute=3, streams=1), by="test")
    wait_until(lambda: api.ask("/api/limits", key=key).json()["tier"] == "narrow")
    limits = api.ask("/api/limits", key=token).json()
    assert limits["tier"] == "narrow"
    assert (limits["requests"]["limit"], limits["streams"]["limit"]) == (120, 20)


@pytest.mark.usefixtures("demo")
def test_visitors_from_one_address_share_it(api: Api) -> None:
    tokens = [visitor("192.0.2.7"), visitor("192.0.2.7"), visitor("192.0.2.8")]
    remaining = [api.ask(SYMBOLS, key=token).headers["X-RateLimit-Remaining"] for token in tokens]
    assert remaining == ["119", "118", "119"]


@pytest.mark.usefixtures("demo")
def test_visitors_from_one_network_of_ipv6_share_it(api: Api) -> None:
    tokens = [visitor("2001:db8::1"), visitor("2001:db8::2"), visitor("2001:db8:0:1::1")]
    remaining = [api.ask(SYMBOLS, key=token).headers["X-RateLimit-Remaining"] for token in tokens]
    assert remaining == ["119", "118", "119"]


@pytest.mark.usefixtures("demo")
def test_account_at_a_visitors_address_has_its_own(api: Api, account: Account) -> None:
    api.ask(SYMBOLS, key=visitor("127.0.0.1"))
    assert left(api, token_of(logged_in(account.user))) == 120


@pytest.mark.usefixtures("clock")
def test_ai_calls_count_as_the_accounts(api: Api, account: Account) -> None:
    key, token = make_key(account), token_of(logged_in(account.user))
    answer = api.ask("/api/analysis/EURUSD", key=token)
    assert (answer.status_code, answer.headers["X-AI-Limit"]) == (200, "5")
    assert AiUsage.used_on(account.pk, NOON.date()) == 1
    calls = [api.ask("/api/limits", key=each).json()["ai_calls"]["remaining"] for each in (key, token)]
    assert calls == [4, 4]
