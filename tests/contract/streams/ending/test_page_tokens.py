"""Page tokens as keys of the streams: an open socket goes on as long as its session does."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest
from django.contrib.sessions.models import Session
from django.test import Client

from accounts.keys import browser_tokens, cache
from accounts.keys.browser_tokens import LIVES_S
from accounts.limits.tiers import change_tier, save_user_access
from accounts.models import Account, User
from core.events.event_feed import feed
from tests.accounts.browser import browser, logged_in, token_of
from tests.client import Server
from tests.contract.streams.client import Frame, Socket, code_of
from tests.contract.streams.conftest import Open
from tests.contract.streams.ticker import Ticker
from tests.factories import make_key, make_tier

INVALID_KEY = ("invalid_api_key", True, False)


@pytest.fixture
def page(account: Account) -> Client:
    return logged_in(account.user)


def subscribed(opened: Open, token: str, symbol: str, path: str = "/ws/market") -> Socket:
    socket = opened(path)
    assert socket.subscribe(symbol, api_key=token)["symbols"] == [symbol]
    return socket


def ended(socket: Socket) -> Frame:
    refused = socket.refused()
    assert (code_of(refused), socket.closed) == (INVALID_KEY, 4401)
    return refused


def test_token_in_the_message_or_the_handshake(
    opened: Open, page: Client, ticker: Ticker, path: str, symbol: str
) -> None:
    token = token_of(page)
    in_message, in_handshake = subscribed(opened, token, symbol, path), opened(path, key=token)
    assert in_handshake.subscribe(symbol)["type"] == "subscribed"
    ticker.past_a_minute(symbol)
    assert [socket.hear()["symbol"] for socket in (in_message, in_handshake)] == [symbol] * 2


def test_renewed_token_may_follow_on_the_same_socket(opened: Open, page: Client, symbol: str) -> None:
    socket = subscribed(opened, token_of(page), symbol)
    assert socket.ask({"action": "ping", "api_key": token_of(page)})["type"] == "pong"
    assert len(socket.ask({"action": "list", "api_key": token_of(page)})["symbols"]) == 1


def test_open_socket_outlives_its_token_as_long_as_its_session(
    service: Server,
    opened: Open,
    page: Client,
    account: Account,
    ticker: Ticker,
    symbol: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    token = token_of(page)
    socket = subscribed(opened, token, symbol)
    later = time.time() + LIVES_S + 1
    for module in (browser_tokens, cache):
        monkeypatch.setattr(module, "time", SimpleNamespace(time=lambda: later))
    late = opened()
    late.refused({"action": "subscribe", "symbols": [symbol], "api_key": token})
    assert late.closed == 4401
    # Also when all who use the account are looked at again.
    change_tier(account, make_tier("other", streams=7), by="test")
    service.run(feed.read())
    ticker(symbol)
    assert socket.hear()["symbol"] == symbol
    page.post("/accounts/logout/")
    ended(socket)


@pytest.mark.parametrize("ending", ["logout", "deleted session", "new password", "locked out"])
def test_open_socket_ends_with_its_session(
    opened: Open, page: Client, account: Account, symbol: str, ending: str
) -> None:
    socket = subscribed(opened, token_of(page), symbol)
    with_key = opened(key=make_key(account))
    with_key.subscribe(symbol)
    if ending == "logout":
        page.post("/accounts/logout/")
    elif ending == "deleted session":
        Session.objects.filter(session_key=page.cookies["sessionid"].value).delete()
    elif ending == "new password":
        account.user.set_password("a longer walk 8")
        account.user.save()
    else:
        User.objects.filter(account=account).update(is_active=False)
        save_user_access(account, by="test")
    assert ended(socket)["error"]["status"] == 401
    if ending != "locked out":
        assert with_key.is_open


def test_visitor_of_the_demo_streams_without_a_login(
    opened: Open, settings: object, ticker: Ticker, symbol: str
) -> None:
    settings.DEMO = settings.PUBLIC_TERMINAL = True  # type: ignore[attr-defined]
    make_tier("pro", streams=1)
    sockets = [subscribed(opened, token_of(browser()), symbol) for _ in range(2)]
    ticker(symbol)
    assert [socket.hear()["symbol"] for socket in sockets] == [symbol] * 2
