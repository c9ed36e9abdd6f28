"""Open streams and the account behind them: limits, takeover, keys that end, tiers that change, strangers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from pytest_django.fixtures import Settings

from accounts.deletion import delete_account
from accounts.key_text import generate_key, prefix_of
from accounts.keys.issuing import revoke_key, roll_key
from accounts.limits.tiers import change_tier, save_tier, save_user_access
from accounts.models import Account, ApiKey
from accounts.open_streams.registry import open_streams
from core.events.event_feed import feed
from market.streams.authenticated import AuthenticatedSockets
from tests.client import Api, Server
from tests.contract.streams.client import MARKET, ORDERFLOW, Frame, Socket, code_of, shortened
from tests.contract.streams.conftest import Open
from tests.contract.streams.ticker import Ticker
from tests.factories import make_account, make_key, make_tier
from tests.patience import PATIENCE_S, wait_until

pytestmark = pytest.mark.services

TOO_MANY = ("stream_limit_exceeded", True, True)
INVALID_KEY = ("invalid_api_key", True, False)
_addresses = itertools.count(2)


@pytest.fixture
def account(service: Server) -> Account:
    """It may have two streams."""
    return make_account(tier=make_tier("narrow", streams=2))


def row_of(key: str) -> ApiKey:
    return ApiKey.objects.get(prefix=prefix_of(key))


def connected(service: Server) -> int:
    return service.run(open_streams.count())


@pytest.fixture(autouse=True)
def _nobody_is_left(service: Server) -> None:
    wait_until(lambda: connected(service) == 0)


def two(opened: Open, key: str, symbol: str) -> list[Socket]:
    made = [opened(path, key=key) for path in (MARKET, ORDERFLOW)]
    for socket in made:
        assert socket.subscribe(symbol)["type"] == "subscribed"
    return made


def test_newcomer_above_the_limit_of_all_keys_is_refused(
    opened: Open, account: Account, key: str, path: str, symbol: str
) -> None:
    held = two(opened, key, symbol)
    newcomer = opened(path, key=make_key(account))
    refused = newcomer.refused({"action": "subscribe", "symbols": [symbol], "id": 5})
    assert code_of(refused) == TOO_MANY
    assert [refused["error"][name] for name in ("limit", "open", "retry_after")] == [2, 2, 5]
    assert (refused["id"], refused["error"]["status"], newcomer.closed) == (5, 429, 4429)
    assert all(socket.is_open for socket in held)


def test_socket_counts_once_from_its_first_subscribe_until_it_has_gone(
    opened: Open, service: Server, key: str, symbol: str
) -> None:
    waiting = [opened(key=key) for _ in range(4)]
    assert all(socket.is_open for socket in waiting)
    for socket in (*waiting[:2], *waiting[:2]):
        assert socket.subscribe(symbol)["type"] == "subscribed"
    with Api(service, key) as api:
        assert api.ask("/api/session").json()["clients_connected"] == connected(service) == 2
    assert code_of(waiting[2].refused({"action": "subscribe", "symbols": [symbol]})) == TOO_MANY
    waiting[0].connection.close()
    wait_until(lambda: connected(service) == 1)
    assert waiting[3].subscribe(symbol)["type"] == "subscribed"


def test_takeover_ends_the_oldest_on_the_same_path_and_none_below_the_limit(
    opened: Open, key: str, symbol: str
) -> None:
    older = opened(MARKET, key=key)
    older.subscribe(symbol)
    other = opened(ORDERFLOW, key=key)
    other.subscribe(symbol, takeover=True)
    assert older.is_open
    assert opened(ORDERFLOW, key=key).subscribe(symbol, takeover=True)["type"] == "subscribed"
    assert (code_of(other.refused()), other.closed) == (("taken_over", True, False), 4409)
    assert older.is_open


def lock_out(key: str) -> None:
    user = row_of(key).account.user
    user.is_active = False
    user.save()
    save_user_access(row_of(key).account, by="test")


@pytest.mark.parametrize(
    ("end", "is_kept"),
    [
        pytest.param(lambda key: revoke_key(row_of(key), by="test"), True, id="revoked"),
        pytest.param(lambda key: roll_key(row_of(key), overlap_hours=0, by="test"), True, id="rolled"),
        pytest.param(lock_out, False, id="user locked out"),
        pytest.param(lambda key: delete_account(row_of(key).account.user), False, id="account deleted"),
    ],
)
def test_key_that_ends_ends_its_sockets_and_no_other(
    opened: Open,
    service: Server,
    ticker: Ticker,
    account: Account,
    key: str,
    symbol: str,
    end: Callable[[str], object],
    is_kept: bool,
) -> None:
    kept = opened(key=make_key(account))
    kept.subscribe(symbol)
    ended = [opened(key=key), opened(ORDERFLOW, key=key)]
    ended[0].subscribe(symbol)
    assert ended[1].is_open
    end(key)
    service.run(feed.read())
    ticker(symbol)
    for socket in ended if is_kept else (*ended, kept):
        assert (code_of(socket.refused()), socket.closed) == (INVALID_KEY, 4401)
    assert connected(service) == is_kept
    if is_kept:
        assert kept.hear()["symbol"] == symbol


def test_rolled_key_ends_its_sockets_when_its_overlap_is_over(
    opened: Open, service: Server, key: str, symbol: str
) -> None:
    with shortened(AuthenticatedSockets, "LOOK_EVERY_S", 0.02):
        socket = opened(key=key)
        socket.subscribe(symbol)
        roll_key(row_of(key), overlap_hours=1, by="test")
        service.run(feed.read())
        assert socket.is_open
        ApiKey.objects.filter(pk=row_of(key).pk).update(expires_at=datetime.now(UTC) + timedelta(seconds=0.3))
        save_user_access(row_of(key).account, by="test")
        service.run(feed.read())
        assert (code_of(socket.refused()), socket.closed) == (INVALID_KEY, 4401)


@pytest.mark.parametrize("is_edited", [False, True], ids=["another tier", "the tier itself"])
def test_lower_tier_closes_the_newest(
    opened: Open, service: Server, account: Account, key: str, symbol: str, is_edited: bool
) -> None:
    older, newest = two(opened, key, symbol)
    if is_edited:
        account.tier.streams = 1
        save_tier(account.tier, by="test")
    else:
        change_tier(account, make_tier("single", streams=1), by="test")
    service.run(feed.read())
    refused = newest.refused()
    assert (code_of(refused), refused["error"]["limit"], newest.closed) == (TOO_MANY, 1, 4429)
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
    assert code_of(relayed.refused({"action": "ping"})) == INVALID_KEY


@pytest.mark.parametrize(
    ("said", "changes"), [("https", {}), ("http", {"ALLOW_PLAIN_HTTP": True}), ("http", {})], ids=str
)
def test_key_over_plain_http_is_refused_in_production(
    opened: Open, key: str, symbol: str, settings: Settings, said: str, changes: dict[str, bool]
) -> None:
    for name, value in ({"PRODUCTION": True} | changes).items():
        setattr(settings, name, value)
    socket = opened(X_Forwarded_Proto=said)
    if said == "https" or changes:
        assert socket.subscribe(symbol, api_key=key)["type"] == "subscribed"
    else:
        refused = socket.refused({"action": "subscribe", "symbols": [symbol], "api_key": key})
        assert (refused["error"]["code"], socket.closed) == ("https_required", 4403)


# 60 failures a minute from one address: sockets and requests count together, valid keys never.
@pytest.fixture
def address() -> str:
    """One that nobody has called from."""
    return f"127.0.3.{next(_addresses)}"


@pytest.fixture
def client(service: Server, address: str) -> Iterator[httpx.Client]:
    transport = httpx.HTTPTransport(local_address=address)
    with httpx.Client(base_url=service.url, transport=transport, timeout=PATIENCE_S) as made:
        yield made


def failed(opened: Open, address: str, **key: str) -> Frame:
    socket = opened(address=address)
    refusal = socket.refused({"action": "subscribe", "symbols": ["EURUSD"], **key})
    assert (code_of(refusal), socket.closed) == (INVALID_KEY, 4401)
    error: Frame = refusal["error"]
    return error


def test_after_60_failed_requests_sockets_without_a_valid_key_are_told_to_wait(
    opened: Open, client: httpx.Client, address: str, key: str, symbol: str
) -> None:
    assert {client.get("/api/symbols").status_code for _ in range(60)} == {401}
    for wrong in ({"api_key": generate_key()}, {"api_key": "nonsense"}, {}):
        error = failed(opened, address, **wrong)
        assert 1 <= error["retry_after"] <= 60
        assert "Too many attempts" in error["message"]
    assert opened(address=address).subscribe(symbol, api_key=key)["type"] == "subscribed"
    assert "retry_after" not in failed(opened, f"127.0.3.{next(_addresses)}", api_key="nonsense")


def test_60_failed_sockets_use_up_the_failures_of_requests(
    opened: Open, client: httpx.Client, address: str
) -> None:
    for _ in range(60):
        assert "retry_after" not in failed(opened, address, api_key="nonsense")
    answer = client.get("/api/symbols")
    assert (answer.status_code, answer.json()["error"]["code"]) == (429, "rate_limit_exceeded")
