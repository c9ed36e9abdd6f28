"""Our own pages: tokens as keys of the streams, and 20 at once for an account or an address on every tier."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.test import Client

from accounts.keys import cache, caller
from accounts.keys.caller import LIVES_S
from accounts.limits.tiers import change_tier, save_user_access
from accounts.models import Account, User
from accounts.open_streams import open_streams
from core.events.event_feed import feed
from tests.accounts.browser import browser, logged_in, token_of
from tests.client import Server
from tests.contract.streams.client import MARKET, Socket, code_of
from tests.contract.streams.conftest import Open
from tests.contract.streams.ticker import Ticker
from tests.factories import make_account, make_key, make_tier, make_user

LIMIT = ("stream_limit_exceeded", True, True)


@pytest.fixture
def account(service: Server) -> Account:
    free = make_tier("free", requests_per_minute=60, streams=2, ai_calls_per_day=5)
    return make_account(make_user(password="a long walk 7"), tier=free)


@pytest.fixture
def page(account: Account) -> Client:
    return logged_in(account.user)


@pytest.fixture
def token(page: Client) -> str:
    return token_of(page)


def subscribed(opened: Open, key: str, symbol: str, path: str = MARKET) -> Socket:
    socket = opened(path)
    assert socket.subscribe(symbol, api_key=key)["symbols"] == [symbol]
    return socket


def refused(opened: Open, key: str, symbol: str) -> dict[str, Any]:
    frame = opened().refused({"action": "subscribe", "symbols": [symbol], "api_key": key})
    assert code_of(frame) == LIMIT
    error: dict[str, Any] = frame["error"]
    return error


def test_token_in_the_message_or_the_handshake_opens_every_stream(
    opened: Open, page: Client, token: str, ticker: Ticker, path: str, symbol: str
) -> None:
    in_message, in_handshake = subscribed(opened, token, symbol, path), opened(path, key=token)
    assert in_handshake.subscribe(symbol)["type"] == "subscribed"
    ticker.past_a_minute(symbol)
    assert [socket.hear()["symbol"] for socket in (in_message, in_handshake)] == [symbol] * 2
    # A renewed one may follow on the same socket.
    renewed = opened(path, key=token)
    for _ in range(2):
        assert renewed.ask({"action": "ping", "api_key": token_of(page)})["type"] == "pong"


def test_open_socket_outlives_its_token_as_long_as_its_session(
    service: Server,
    opened: Open,
    account: Account,
    token: str,
    ticker: Ticker,
    symbol: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    socket = subscribed(opened, token, symbol)
    later = time.time() + LIVES_S + 1
    for module in (caller, cache):
        monkeypatch.setattr(module, "time", SimpleNamespace(time=lambda: later))
    late = opened()
    late.refused({"action": "subscribe", "symbols": [symbol], "api_key": token})
    assert late.closed == 4401
    # Also when all who use the account are looked at again.
    change_tier(account, make_tier("other", streams=7), by="test")
    service.run(feed.read())
    ticker(symbol)
    assert socket.hear()["symbol"] == symbol


def delete_session(page: Client, user: User) -> None:
    Session.objects.filter(session_key=page.cookies["sessionid"].value).delete()


def set_password(page: Client, user: User) -> None:
    user.set_password("a longer walk 8")
    user.save()


def lock_out(page: Client, user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)
    save_user_access(Account.objects.get(user=user), by="test")


@pytest.mark.parametrize(
    "end",
    [lambda page, user: page.post("/accounts/logout/"), delete_session, set_password, lock_out],
    ids=["logout", "deleted session", "new password", "locked out"],
)
def test_open_socket_ends_with_its_session(
    opened: Open,
    page: Client,
    account: Account,
    token: str,
    symbol: str,
    end: Callable[[Client, User], object],
) -> None:
    socket, by_key = (subscribed(opened, each, symbol) for each in (token, make_key(account)))
    end(page, account.user)
    told = socket.refused()
    assert (code_of(told), socket.closed) == (("invalid_api_key", True, False), 4401)
    assert told["error"]["status"] == 401
    if end is not lock_out:
        assert by_key.is_open


def test_sessions_of_one_account_share_twenty_on_all_streams(
    opened: Open, account: Account, token: str, symbol: str
) -> None:
    other = token_of(logged_in(account.user))
    for path in ("/ws/orderflow", "/ws/signals"):
        subscribed(opened, token, symbol, path)
    for number in range(18):
        subscribed(opened, (token, other)[number % 2], symbol)
    for each in (token, other):
        error = refused(opened, each, symbol)
        assert (error["limit"], error["open"]) == (20, 20)
        assert "Close another tab" in error["message"]


def test_keys_and_pages_leave_each_other_their_streams(
    service: Server, opened: Open, account: Account, token: str, symbol: str
) -> None:
    key = make_key(account)
    pages = [subscribed(opened, token, symbol) for _ in range(3)]
    oldest, newest = (subscribed(opened, key, symbol) for _ in range(2))
    error = refused(opened, key, symbol)
    assert (error["limit"], error["open"]) == (2, 2)
    assert "Your tier" in error["message"]
    # A takeover takes none from a page, and both are listed as the account's.
    assert opened().subscribe(symbol, api_key=key, takeover=True)["type"] == "subscribed"
    assert code_of(oldest.refused()) == ("taken_over", True, False)
    listed = [stream.counted_under for stream in service.run(open_streams.of_account(account.pk))]
    assert sorted(listed) == [f"{account.pk}"] * 2 + [f"pages:{account.pk}"] * 3
    change_tier(account, make_tier("none", streams=0), by="test")
    service.run(feed.read())
    assert (code_of(newest.refused()), newest.closed) == (LIMIT, 4429)
    assert all(page.is_open for page in pages)


def test_visitors_from_one_address_share_twenty_without_a_login(
    opened: Open, settings: Any, ticker: Ticker, symbol: str
) -> None:
    settings.DEMO = settings.PUBLIC_TERMINAL = True
    make_tier("pro", streams=1)
    first, second = (token_of(browser("192.0.2.7")) for _ in range(2))
    sockets = [subscribed(opened, (first, second)[number % 2], symbol) for number in range(20)]
    ticker(symbol)
    assert [socket.hear()["symbol"] for socket in sockets[:2]] == [symbol] * 2
    assert refused(opened, second, symbol)["open"] == 20
    assert subscribed(opened, token_of(browser("192.0.2.8")), symbol).is_open
