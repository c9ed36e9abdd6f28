"""Our own pages: tokens as keys of REST, their end with the session, and their allowance on every tier."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.utils import timezone

from accounts.keys.caller import PAGE_REQUESTS, PAGE_STREAMS
from accounts.limits.throttling import used_on
from accounts.limits.tiers import change_tier, save_user_access
from accounts.models import Account, User
from tests.accounts.browser import browser, logged_in, token_of
from tests.client import Api, Server
from tests.contract.answers import PATHS, refusal
from tests.factories import NOON, make_account, make_instrument, make_key, make_tier, make_tiers, make_user
from tests.patience import wait_until

pytestmark = pytest.mark.services

SYMBOLS = "/api/symbols"


@pytest.fixture(scope="module", autouse=True)
def rows(shared: Api) -> None:
    make_tiers()
    for symbol in ("EURUSD", "XAUUSD"):
        make_instrument(symbol)


@pytest.fixture
def account(shared: Api) -> Account:
    return make_account(make_user(password="a long walk 7"), tier="free")


@pytest.fixture
def token(account: Account) -> str:
    return token_of(logged_in(account.user))


@pytest.fixture
def api(shared_server: Server) -> Iterator[Api]:
    with Api(shared_server, "") as client:
        yield client


def opens(api: Api, token: str) -> bool:
    return api.ask(SYMBOLS, key=token).status_code == 200


def left(api: Api, *keys: str) -> list[str]:
    """After one request with each."""
    return [api.ask(SYMBOLS, key=key).headers["X-RateLimit-Remaining"] for key in keys]


@pytest.mark.parametrize("path", [path for path in PATHS if path != "/api/archive"])
def test_token_opens_every_path_but_the_archive_as_a_key_does(
    api: Api, shared: Api, token: str, path: str
) -> None:
    assert api.ask(path, key=token).status_code == shared.ask(path).status_code


@pytest.mark.parametrize(
    "spoil",
    [
        lambda token: token.removeprefix("pt_"),
        lambda token: token[:-2] + ("aa" if token[-2:] != "aa" else "bb"),
        lambda token: token.replace("pt_", "pt_1", 1),
    ],
    ids=["lead", "signature", "session"],
)
def test_forged_token_is_an_invalid_key(api: Api, token: str, spoil: Callable[[str], str]) -> None:
    refusal(api.ask(SYMBOLS, key=spoil(token)), 401, "invalid_api_key")


def test_token_ends_after_five_minutes_also_while_it_is_in_use(api: Api, account: Account) -> None:
    with time_machine.travel(timezone.now() - timedelta(seconds=301)):
        ended = token_of(logged_in(account.user))
    refusal(api.ask(SYMBOLS, key=ended), 401, "invalid_api_key")
    with time_machine.travel(timezone.now() - timedelta(seconds=299)):
        ending = token_of(logged_in(account.user))
    opens(api, ending)
    wait_until(lambda: not opens(api, ending))


@pytest.mark.parametrize("ending", ["logout", "new password", "locked out"])
def test_token_ends_with_its_session(api: Api, account: Account, ending: str) -> None:
    user = account.user
    client = logged_in(user)
    token, other = token_of(client), token_of(logged_in(user))
    assert opens(api, token)
    assert opens(api, other)
    if ending == "logout":
        client.post("/accounts/logout/")
    elif ending == "new password":
        user.set_password("a longer walk 8")
        user.save()
    else:
        User.objects.filter(pk=user.pk).update(is_active=False)
        save_user_access(account, by="test")
    wait_until(lambda: not opens(api, token))
    assert opens(api, other) is (ending == "logout")


def test_token_sends_no_ticks_and_opens_nothing_from_the_address(api: Api, token: str) -> None:
    for headers in ({"X-Ingest-Key": token}, {"Authorization": f"Bearer {token}"}):
        refusal(api.post("/ingest/ticks", json=[], headers=headers), 401, "invalid_ingest_key")
    refusal(api.get(f"{SYMBOLS}?api_key={token}"), 401, "missing_api_key")


def test_no_log_shows_a_token(api: Api, account: Account, caplog: pytest.LogCaptureFixture) -> None:
    client = logged_in(account.user)
    token = token_of(client)
    with caplog.at_level(logging.DEBUG), caplog.at_level(logging.INFO, "accounts.access"):
        for key in (token, token[:-1]):
            api.ask(SYMBOLS, key=key)
            api.get(f"{SYMBOLS}?api_key={key}")
        client.post("/accounts/logout/")
    # The client's own log lines tell the whole address; ours are meant.
    ours = ("accounts", "config", "django", "market")
    logged = "".join(str(record.__dict__) for record in caplog.records if record.name.startswith(ours))
    assert SYMBOLS in logged
    assert token[:-1] not in logged


# What pages may ask for.
def test_free_account_has_120_requests_a_minute_on_its_pages(api: Api, token: str) -> None:
    assert (PAGE_REQUESTS, PAGE_STREAMS) == (120, 20)
    answers = [api.ask(SYMBOLS, key=token) for _ in range(121)]
    assert [answer.status_code for answer in answers] == [200] * 120 + [429]
    assert "its pages 120 requests a minute" in refusal(answers[-1], 429, "rate_limit_exceeded")
    assert answers[0].headers["RateLimit-Policy"] == '"pages";q=120;w=60'


def test_allowance_is_shared_by_the_sessions_of_an_account_on_every_tier(api: Api, token: str) -> None:
    premium = make_account(make_user(), tier="premium")
    sessions = [token_of(logged_in(premium.user)) for _ in range(2)]
    assert left(api, *sessions, token) == ["119", "118", "119"]


def test_keys_and_pages_cost_each_other_nothing(api: Api, shared: Api) -> None:
    account = make_account(make_user(), tier=make_tier("single", requests_per_minute=1))
    key, token = make_key(account), token_of(logged_in(account.user))
    assert left(api, token, token, key, token) == ["119", "118", "0", "117"]
    assert [opens(api, key), opens(api, token)] == [False, True]


def test_tier_that_changes_leaves_the_pages_as_they_are(api: Api, account: Account, token: str) -> None:
    key = make_key(account)
    change_tier(account, make_tier("narrow", requests_per_minute=3, streams=1), by="test")
    wait_until(lambda: api.ask("/api/limits", key=key).json()["tier"] == "narrow")
    limits = api.ask("/api/limits", key=token).json()
    assert limits["tier"] == "narrow"
    assert (limits["requests"]["limit"], limits["streams"]["limit"]) == (120, 20)


@pytest.mark.parametrize(
    "addresses",
    [("192.0.2.7", "192.0.2.7", "192.0.2.8"), ("2001:db8::1", "2001:db8::2", "2001:db8:0:1::1")],
    ids=["one address", "one network of IPv6"],
)
def test_visitors_from_one_address_share_it(api: Api, settings: Any, addresses: tuple[str, ...]) -> None:
    settings.DEMO = settings.PUBLIC_TERMINAL = True
    assert left(api, *(token_of(browser(each)) for each in addresses)) == ["119", "118", "119"]


def test_account_at_a_visitors_address_has_its_own(api: Api, settings: Any, token: str) -> None:
    settings.DEMO = settings.PUBLIC_TERMINAL = True
    assert left(api, token_of(browser("127.0.0.1")), token) == ["119", "119"]


@pytest.mark.usefixtures("clock")
def test_ai_calls_count_as_the_accounts(api: Api, account: Account) -> None:
    key, token = make_key(account), token_of(logged_in(account.user))
    answer = api.ask("/api/analysis/EURUSD", key=token)
    assert (answer.status_code, answer.headers["X-AI-Limit"]) == (200, "5")
    assert used_on(account.pk, NOON.date()) == 1
    calls = [api.ask("/api/limits", key=each).json()["ai_calls"]["remaining"] for each in (key, token)]
    assert calls == [4, 4]


@pytest.mark.usefixtures("clock")
def test_ai_calls_of_visitors_count_by_network_whatever_becomes_of_their_accounts(
    api: Api, settings: Any
) -> None:
    settings.DEMO = settings.PUBLIC_TERMINAL = True
    answer = api.ask("/api/analysis/XAUUSD", key=token_of(browser("2001:db8::1")))
    assert (answer.status_code, answer.headers["X-AI-Limit"]) == (200, "5")
    User.objects.filter(account__visitor_from__gt="").delete()
    tokens = [token_of(browser(each)) for each in ("2001:db8::2", "2001:db8:0:1::1")]
    limits = [api.ask("/api/limits", key=each).json()["ai_calls"] for each in tokens]
    assert [each["remaining"] for each in limits] == [4, 5]
