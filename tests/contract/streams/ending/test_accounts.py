"""Open streams and the account behind them: limits, takeover, keys that end, tiers that change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from accounts.ending.deletion import delete_account
from accounts.key_text import prefix_of
from accounts.keys.issuing import revoke_key, roll_key
from accounts.limits.tiers import change_tier, save_tier, save_user_access
from accounts.models import Account, ApiKey
from accounts.open_streams.registry import open_streams
from core.events.event_feed import feed
from market.streams.sessions.authenticated import AuthenticatedSessions
from tests.client import Api, Server
from tests.contract.streams.client import MARKET, ORDERFLOW, Socket, code_of, shortened
from tests.contract.streams.conftest import Open
from tests.contract.streams.ticker import Ticker
from tests.factories import make_account, make_key, make_tier
from tests.patience import wait_until

pytestmark = pytest.mark.services

TOO_MANY = ("stream_limit_exceeded", True, True)


@pytest.fixture
def account(service: Server) -> Account:
    """It may have two streams."""
    return make_account(tier=make_tier("narrow", streams=2))


def row_of(key: str) -> ApiKey:
    return ApiKey.objects.get(prefix=prefix_of(key))


def connected(service: Server) -> int:
    return service.run(open_streams.count())


def until_connected(service: Server, number: int) -> None:
    wait_until(lambda: connected(service) == number)


def two(opened: Open, key: str, symbol: str) -> list[Socket]:
    made = [opened(path, key=key) for path in (MARKET, ORDERFLOW)]
    for socket in made:
        assert socket.subscribe(symbol)["type"] == "subscribed"
    return made


def test_newcomer_above_the_limit_is_refused(opened: Open, key: str, path: str, symbol: str) -> None:
    held = two(opened, key, symbol)
    newcomer = opened(path, key=key)
    refused = newcomer.refused({"action": "subscribe", "symbols": [symbol], "id": 5})
    assert code_of(refused) == TOO_MANY
    assert {name: refused["error"][name] for name in ("limit", "open", "retry_after")} == {
        "limit": 2,
        "open": 2,
        "retry_after": 5,
    }
    assert (refused["id"], refused["error"]["status"], newcomer.closed) == (5, 429, 4429)
    assert all(socket.is_open for socket in held)


def test_socket_counts_from_its_first_subscribe_and_once(opened: Open, key: str, symbol: str) -> None:
    waiting = [opened(key=key) for _ in range(4)]
    assert all(socket.is_open for socket in waiting)
    for socket in (*waiting[:2], *waiting[:2]):
        assert socket.subscribe(symbol)["type"] == "subscribed"
    assert code_of(waiting[2].refused({"action": "subscribe", "symbols": [symbol]})) == TOO_MANY


def test_keys_of_an_account_share_its_streams(opened: Open, account: Account, key: str, symbol: str) -> None:
    two(opened, key, symbol)
    other = opened(key=make_key(account))
    assert code_of(other.refused({"action": "subscribe", "symbols": [symbol]})) == TOO_MANY


def test_place_is_free_once_a_socket_has_gone(opened: Open, service: Server, key: str, symbol: str) -> None:
    before = connected(service)
    two(opened, key, symbol)[0].connection.close()
    until_connected(service, before + 1)
    assert opened(key=key).subscribe(symbol)["type"] == "subscribed"


def test_takeover_ends_the_oldest_on_the_same_path(opened: Open, key: str, symbol: str) -> None:
    older, other = two(opened, key, symbol)
    assert opened(ORDERFLOW, key=key).subscribe(symbol, takeover=True)["type"] == "subscribed"
    assert (code_of(other.refused()), other.closed) == (("taken_over", True, False), 4409)
    assert older.is_open


def test_takeover_below_the_limit_ends_nobody(opened: Open, key: str, symbol: str) -> None:
    first = opened(key=key)
    first.subscribe(symbol)
    opened(key=key).subscribe(symbol, takeover=True)
    assert first.is_open


def test_session_counts_authenticated_open_sockets(
    opened: Open, service: Server, account: Account, key: str, symbol: str
) -> None:
    with Api(service, key) as api:
        before = api.ask("/api/session").json()["clients_connected"]
        opened()
        two(opened, key, symbol)
        assert api.ask("/api/session").json()["clients_connected"] == before + 2


def test_revoked_key_ends_its_sockets_and_no_other(
    opened: Open, service: Server, account: Account, key: str, symbol: str
) -> None:
    kept = opened(key=make_key(account))
    kept.subscribe(symbol)
    ended = [opened(key=key), opened(ORDERFLOW, key=key)]
    ended[0].subscribe(symbol)
    assert ended[1].is_open
    revoke_key(row_of(key), by="test")
    service.run(feed.read())
    for socket in ended:
        assert (code_of(socket.refused()), socket.closed) == (("invalid_api_key", True, False), 4401)
    assert kept.is_open


def test_revoked_socket_hears_nothing_more_and_frees_its_place(
    opened: Open, service: Server, ticker: Ticker, key: str, symbol: str
) -> None:
    before = connected(service)
    socket = opened(key=key)
    socket.subscribe(symbol)
    revoke_key(row_of(key), by="test")
    service.run(feed.read())
    ticker(symbol)
    assert socket.refused()["error"]["code"] == "invalid_api_key"
    assert socket.closed == 4401
    assert connected(service) == before


def test_rolled_key_ends_its_sockets_when_its_overlap_is_over(
    opened: Open, service: Server, key: str, symbol: str
) -> None:
    with shortened(AuthenticatedSessions, "LOOK_EVERY_S", 0.02):
        socket = opened(key=key)
        socket.subscribe(symbol)
        roll_key(row_of(key), overlap_hours=1, by="test")
        service.run(feed.read())
        assert socket.is_open
        ApiKey.objects.filter(pk=row_of(key).pk).update(expires_at=datetime.now(UTC) + timedelta(seconds=0.3))
        save_user_access(row_of(key).account, by="test")
        service.run(feed.read())
        assert (socket.refused()["error"]["code"], socket.closed) == ("invalid_api_key", 4401)


def test_rolled_key_without_overlap_ends_its_sockets(
    opened: Open, service: Server, key: str, symbol: str
) -> None:
    socket = opened(key=key)
    socket.subscribe(symbol)
    roll_key(row_of(key), overlap_hours=0, by="test")
    service.run(feed.read())
    assert (socket.refused()["error"]["code"], socket.closed) == ("invalid_api_key", 4401)


def test_locked_out_user_loses_the_sockets(
    opened: Open, service: Server, account: Account, key: str, symbol: str
) -> None:
    socket = opened(key=key)
    socket.subscribe(symbol)
    account.user.is_active = False
    account.user.save()
    save_user_access(account, by="test")
    service.run(feed.read())
    assert socket.refused()["error"]["code"] == "invalid_api_key"


def test_lower_tier_closes_the_newest(
    opened: Open, service: Server, account: Account, key: str, symbol: str
) -> None:
    older, newest = two(opened, key, symbol)
    change_tier(account, make_tier("single", streams=1), by="test")
    service.run(feed.read())
    refused = newest.refused()
    assert (code_of(refused), newest.closed) == (TOO_MANY, 4429)
    assert refused["error"]["limit"] == 1
    assert older.is_open


def test_tier_whose_streams_are_lowered_closes_the_newest(
    opened: Open, service: Server, account: Account, key: str, symbol: str
) -> None:
    account.tier = make_tier("shrinking", streams=2)
    account.save()
    older, newest = two(opened, key, symbol)
    account.tier.streams = 1
    save_tier(account.tier, by="test")
    service.run(feed.read())
    assert (code_of(newest.refused()), newest.closed) == (TOO_MANY, 4429)
    assert older.is_open


def test_higher_tier_holds_for_a_socket_that_was_open_before(
    opened: Open, service: Server, account: Account, key: str, symbol: str
) -> None:
    account.tier = make_tier("growing", streams=1)
    account.save()
    sockets = [opened(key=key) for _ in range(2)]
    assert all(socket.is_open for socket in sockets)
    account.tier.streams = 2
    save_tier(account.tier, by="test")
    service.run(feed.read())
    assert [socket.subscribe(symbol)["type"] for socket in sockets] == ["subscribed"] * 2


def test_demo_key_opens_a_stream_on_this_machine_alone(opened: Open, symbol: str) -> None:
    demo = make_key(make_account(tier=make_tier("roomy"), is_demo=True))
    assert opened(key=demo).subscribe(symbol)["type"] == "subscribed"
    relayed = opened(key=demo, X_Forwarded_For="192.0.2.1")
    assert relayed.refused({"action": "ping"})["error"]["code"] == "invalid_api_key"


def test_deleting_the_account_closes_its_sockets(
    opened: Open, service: Server, account: Account, symbol: str
) -> None:
    sockets = two(opened, make_key(account), symbol)
    delete_account(account.user)
    service.run(feed.read())
    for socket in sockets:
        assert (code_of(socket.refused()), socket.closed) == (("invalid_api_key", True, False), 4401)
