"""The streams of our own pages: 20 at once for an account or an address, whatever the tier."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.keys.caller import PAGE_STREAMS
from accounts.limits.tiers import change_tier
from accounts.models import Account
from accounts.open_streams import open_streams
from core.events.event_feed import feed
from tests.accounts.browser import browser, logged_in, token_of
from tests.client import Server
from tests.contract.streams.client import Socket, code_of
from tests.contract.streams.conftest import Open
from tests.factories import make_account, make_key, make_tier, make_user

MARKET, TERMINAL = "/ws/market", ("/ws/market", "/ws/orderflow", "/ws/signals")
LIMIT = ("stream_limit_exceeded", True, True)


@pytest.fixture
def account(service: Server) -> Account:
    free = make_tier("free", requests_per_minute=60, streams=2, ai_calls_per_day=5)
    return make_account(make_user(password="a long walk 7"), tier=free)


@pytest.fixture
def token(account: Account) -> str:
    return token_of(logged_in(account.user))


def subscribed(opened: Open, key: str, symbol: str, path: str = MARKET) -> Socket:
    socket = opened(path)
    assert socket.subscribe(symbol, api_key=key)["symbols"] == [symbol]
    return socket


def refused(opened: Open, key: str, symbol: str) -> dict[str, Any]:
    frame = opened().refused({"action": "subscribe", "symbols": [symbol], "api_key": key})
    assert code_of(frame) == LIMIT
    error: dict[str, Any] = frame["error"]
    return error


def test_free_account_opens_all_streams_of_the_terminal(opened: Open, token: str, symbol: str) -> None:
    sockets = [subscribed(opened, token, symbol, path) for path in TERMINAL]
    assert all(socket.is_open for socket in sockets)


def test_sessions_of_one_account_share_twenty(
    opened: Open, account: Account, token: str, symbol: str
) -> None:
    other = token_of(logged_in(account.user))
    for number in range(PAGE_STREAMS):
        subscribed(opened, (token, other)[number % 2], symbol)
    for each in (token, other):
        error = refused(opened, each, symbol)
        assert (error["limit"], error["open"]) == (20, 20)
        assert "Close another tab" in error["message"]


def test_keys_and_pages_leave_each_other_their_streams(
    opened: Open, account: Account, token: str, symbol: str
) -> None:
    key = make_key(account)
    for each in (*[token] * 3, *[key] * 2):
        subscribed(opened, each, symbol)
    error = refused(opened, key, symbol)
    assert (error["limit"], error["open"]) == (2, 2)
    assert "Your tier" in error["message"]
    assert subscribed(opened, token, symbol).is_open


def test_takeover_of_a_key_takes_none_from_a_page(
    opened: Open, account: Account, token: str, symbol: str
) -> None:
    key, page = make_key(account), subscribed(opened, token, symbol)
    oldest = [subscribed(opened, key, symbol) for _ in range(2)][0]
    assert opened().subscribe(symbol, api_key=key, takeover=True)["type"] == "subscribed"
    assert (code_of(oldest.refused()), page.is_open) == (("taken_over", True, False), True)


def test_lower_tier_closes_streams_of_keys_alone(
    service: Server, opened: Open, account: Account, token: str, symbol: str
) -> None:
    pages = [subscribed(opened, token, symbol) for _ in range(3)]
    by_key = subscribed(opened, make_key(account), symbol)
    change_tier(account, make_tier("none", streams=0), by="test")
    service.run(feed.read())
    assert (code_of(by_key.refused()), by_key.closed) == (LIMIT, 4429)
    assert all(page.is_open for page in pages)


def test_both_are_listed_as_the_accounts(
    service: Server, opened: Open, account: Account, token: str, symbol: str
) -> None:
    held = [subscribed(opened, each, symbol) for each in (make_key(account), token)]
    listed = service.run(open_streams.of_account(account.pk))
    assert [stream.counted_under for stream in listed] == [f"{account.pk}", f"pages:{account.pk}"]
    assert len(held) == len(listed)


def test_visitors_from_one_address_share_twenty(opened: Open, settings: Any, symbol: str) -> None:
    settings.PUBLIC_TERMINAL = True
    make_tier("pro", streams=5)
    first, second = (token_of(browser("192.0.2.7")) for _ in range(2))
    for number in range(PAGE_STREAMS):
        subscribed(opened, (first, second)[number % 2], symbol)
    assert refused(opened, second, symbol)["open"] == 20
    assert subscribed(opened, token_of(browser("192.0.2.8")), symbol).is_open
