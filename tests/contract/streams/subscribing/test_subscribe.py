"""The specification's own client, the envelope of CONTRACT, and what a client gets on request beyond it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from accounts.models import Account
from core.clock import now_ms
from market.prices.records import AbsorptionFound
from market.streams import market_streams as streams
from market.streams.authenticated import authenticated_sockets
from market.streams.consumer import StreamConsumer
from market.streams.protocol.messages import KINDS
from tests.client import Api, Server
from tests.contract.streams.client import CANDLES, MARKET, ORDERFLOW, code_of, shortened
from tests.contract.streams.conftest import Open
from tests.contract.streams.ticker import Ticker
from tests.factories import make_account, make_instrument, make_key, make_tier

PRICE = {"symbol", "bid", "ask", "spread", "time", "volume"}
INVALID_KEY = ("invalid_api_key", True, False)
INVALID = ("invalid_message", False, False)


def absorbed(symbol: str, seq: int) -> AbsorptionFound:
    return AbsorptionFound(symbol, seq, "bid", 1.0841, 250.0, -180.0, 0.00002, 2.61, 1_795_167_165_000)


def test_data_has_exactly_the_fields_of_the_specification(
    opened: Open, ticker: Ticker, key: str, symbol: str
) -> None:
    prices, flow = opened(MARKET), opened(ORDERFLOW)
    for socket in (prices, flow):
        socket.send({"action": "subscribe", "symbols": [symbol], "api_key": key})
        assert socket.hear()["type"] == "subscribed"
    first, last = ticker(symbol, 2)
    ticker.publish(absorbed(symbol, 2))
    assert prices.hear() == {
        "symbol": symbol,
        "bid": first.bid,
        "ask": first.ask,
        "spread": 0.0002,
        "time": first.time_ms,
        "volume": 1.0,
    }
    # One stream has nothing of the other.
    assert set(prices.hear()) == PRICE
    assert prices.is_open
    figures = {"bid_volume": 0.0, "ask_volume": 1.0, "delta": 1.0, "cumulative_delta": 1.0}
    mid = pytest.approx((last.bid + last.ask) / 2)
    assert flow.hear() == {"symbol": symbol, **figures, "price": mid, "time": last.time_ms}
    assert flow.hear() == {
        "type": "absorption",
        "symbol": symbol,
        "side": "bid",
        "price": 1.0841,
        "volume": 250.0,
        "delta": -180.0,
        "price_range": 0.00002,
        "window_ms": 5000,
        "strength": 2.61,
        "time": 1_795_167_165_000,
    }


def test_reply_names_all_that_is_subscribed_with_the_key_in_the_message_or_the_handshake(
    opened: Open, key: str, path: str, symbol: str
) -> None:
    reply = opened(path).subscribe(symbol, api_key=key)
    assert reply == opened(f"{path}/", key=key).subscribe(symbol, features=["lag"])
    assert reply == {
        "type": "subscribed",
        "stream": path.rpartition("/")[2],
        "symbols": [symbol],
        "rejected": [],
        **({"timeframes": ["1m"]} if path == CANDLES else {}),
    }


@pytest.mark.parametrize("path", [kind.path for kind in KINDS])
def test_every_stream_is_listed_among_the_open_ones(
    service: Server, opened: Open, key: str, symbol: str, path: str
) -> None:
    opened(path, key=key).subscribe(symbol)
    with Api(service, key) as api:
        assert [each["path"] for each in api.ask("/api/limits").json()["streams"]["open"]] == [path]


def test_key_of_the_message_wins_over_that_of_the_handshake(opened: Open, key: str, symbol: str) -> None:
    assert opened(key="x").subscribe(symbol, api_key=key)["type"] == "subscribed"
    socket = opened(key=key)
    refused = socket.refused({"action": "subscribe", "symbols": [symbol], "api_key": "x"})
    assert (code_of(refused), socket.closed) == (INVALID_KEY, 4401)


def test_key_in_the_url_and_cookies_of_another_origin_open_nothing(
    service: Server, opened: Open, key: str, symbol: str
) -> None:
    for socket in (
        opened(f"{MARKET}?api_key={key}"),
        opened(Origin="https://elsewhere.example", Cookie="sessionid=x"),
    ):
        refused = socket.refused({"action": "subscribe", "symbols": [symbol]})
        assert code_of(refused) == INVALID_KEY


@pytest.mark.parametrize("action", ["subscribe", "unsubscribe", "list", "ping"])
def test_every_action_needs_a_key(opened: Open, path: str, symbol: str, action: str) -> None:
    socket = opened(path)
    refused = socket.refused({"action": action, "symbols": [symbol], "id": 3})
    assert (code_of(refused), refused["id"], socket.closed) == (INVALID_KEY, 3, 4401)


def test_another_key_is_taken_on_an_open_socket_only_from_the_same_account(
    opened: Open, account: Account, key: str, symbol: str
) -> None:
    socket = opened(key=key)
    assert socket.ask({"action": "ping"})["type"] == "pong"
    assert socket.ask({"action": "ping", "api_key": make_key(account)})["type"] == "pong"
    other = make_key(make_account(tier=make_tier("roomy")))
    refused = socket.refused({"action": "ping", "api_key": other, "id": "a"})
    assert (code_of(refused), refused["id"], socket.is_open) == (INVALID, "a", True)


def test_unknown_symbols_are_rejected_and_the_others_flow(
    opened: Open, ticker: Ticker, key: str, symbol: str
) -> None:
    make_instrument("ASLEEP", active=False)
    socket = opened()
    assert socket.subscribe("NOPE", api_key=key)["symbols"] == []
    # It is authenticated all the same.
    reply = socket.subscribe("nope", symbol.lower(), "NOPE", "ASLEEP")
    rejected = [{"symbol": word, "code": "symbol_not_found"} for word in ("nope", "NOPE", "ASLEEP")]
    assert (reply["symbols"], reply["rejected"]) == ([symbol], rejected)
    ticker(symbol)
    assert socket.hear()["symbol"] == symbol


def test_subscriptions_add_up_sorted_and_nothing_comes_of_what_was_left(
    opened: Open, ticker: Ticker, key: str, symbol: str
) -> None:
    first = make_instrument(f"A{symbol}").symbol
    socket = opened(key=key)
    socket.subscribe(symbol)
    assert socket.subscribe(first)["symbols"] == [first, symbol]
    assert socket.ask({"action": "list"}) == {"type": "subscriptions", "symbols": [first, symbol]}
    left = socket.ask({"action": "unsubscribe", "symbols": [symbol], "id": 8})
    assert left == {"type": "unsubscribed", "symbols": [first], "id": 8}
    ticker(symbol)
    ticker(first)
    assert socket.hear()["symbol"] == first


def test_repeated_subscribe_brings_nothing_twice_and_unsubscribe_without_symbols_leaves_all(
    opened: Open, ticker: Ticker, key: str, path: str, symbol: str
) -> None:
    socket = opened(path, key=key)
    for _ in range(2):
        assert socket.subscribe(symbol)["symbols"] == [symbol]
    ticker.past_a_minute(symbol)
    # Nothing comes before the first tick that would tell who pressed, so it is no order flow.
    numbers = {MARKET: 3, ORDERFLOW: 2, CANDLES: 1}[path]
    assert socket.hear_of(numbers, "symbol") == [symbol] * numbers
    assert socket.is_open
    assert socket.ask({"action": "unsubscribe"})["symbols"] == []
    ticker(symbol, 2)
    assert socket.is_open


@pytest.mark.parametrize("sent", [{"id": 7}, {"id": "seven"}, {"id": 0}, {"id": ""}, {}])
def test_id_is_echoed_if_it_was_sent(opened: Open, key: str, sent: dict[str, Any]) -> None:
    assert opened(key=key).ask({"action": "ping", **sent}) == {"type": "pong", **sent}


@pytest.mark.parametrize("named", [{}, {"symbols": ["*"]}])
def test_all_is_of_the_order_flow_alone_and_has_later_instruments_too(
    opened: Open, ticker: Ticker, key: str, symbol: str, named: dict[str, list[str]]
) -> None:
    message = {"action": "subscribe", **named}
    for path in (MARKET, CANDLES):
        refused = opened(path, key=key).refused(message)
        assert (code_of(refused), refused["error"]["field"]) == (INVALID, "symbols")
    socket = opened(ORDERFLOW, key=key)
    assert socket.ask(message)["symbols"] == ["*"]
    later = make_instrument(f"LATER{symbol}").symbol
    for name in (symbol, later):
        ticker(name, 2)
        assert socket.hear()["symbol"] == name


def test_all_besides_a_symbol_brings_its_frames_once(
    opened: Open, ticker: Ticker, key: str, symbol: str
) -> None:
    socket = opened(ORDERFLOW, key=key)
    socket.subscribe(symbol)
    assert socket.subscribe()["symbols"] == ["*"]
    ticker(symbol, 3)
    assert socket.hear_of(2, "cumulative_delta") == [1, 2]
    assert socket.is_open


def test_two_hundred_symbols_are_taken_and_one_more_is_not(opened: Open, key: str, path: str) -> None:
    socket = opened(path, key=key)
    names = [f"NOPE{number}" for number in range(201)]
    assert len(socket.subscribe(*names[:200])["rejected"]) == 200
    refused = socket.refused({"action": "subscribe", "symbols": names})
    assert (refused["error"]["code"], refused["error"]["max"]) == ("invalid_message", 200)


# On request.
def test_seq_numbers_the_frames_of_a_symbol_without_holes(
    opened: Open, ticker: Ticker, key: str, tick_path: str, symbol: str
) -> None:
    ticker(symbol, 3)
    numbered, plain = opened(tick_path, key=key), opened(tick_path, key=key)
    reply = numbered.subscribe(symbol, features=["seq"])
    plain.subscribe(symbol)
    assert reply["epoch"] == ticker.runner.bus.journal_position.epoch
    last = reply["positions"][symbol]
    ticker(symbol, 3)
    for number in (1, 2, 3):
        assert numbered.hear() == {**plain.hear(), "seq": last + number}
    # It may be asked for later.
    plain.subscribe(symbol, features=["seq"])
    ticker(symbol)
    assert plain.hear()["seq"] == last + 4


def test_lag_tells_when_a_frame_was_sent(opened: Open, ticker: Ticker, key: str, symbol: str) -> None:
    socket = opened(key=key)
    socket.subscribe(symbol, features=["lag"])
    tick = ticker(symbol)[0]
    assert tick.time_ms <= socket.hear()["sent"] <= now_ms()


def test_snapshot_is_the_last_tick_with_its_own_time_and_comes_after_the_reply(
    opened: Open, ticker: Ticker, key: str, symbol: str
) -> None:
    last = ticker(symbol, 3)[-1]
    prices, flow = opened(key=key), opened(ORDERFLOW, key=key)
    assert prices.subscribe(symbol, features=["snapshot", "seq"])["positions"] == {symbol: 3}
    heard = prices.hear()
    assert (heard["bid"], heard["time"], heard["seq"]) == (last.bid, last.time_ms, 3)
    assert prices.is_open
    flow.subscribe(symbol, features=["snapshot"])
    assert flow.hear()["cumulative_delta"] == 2


def test_absorption_signal_is_numbered_among_the_ticks_and_is_no_snapshot(
    opened: Open, ticker: Ticker, key: str, symbol: str
) -> None:
    first, later = opened(ORDERFLOW, key=key), opened(ORDERFLOW, key=key)
    first.subscribe(symbol, features=["seq"])
    ticker(symbol, 3)
    ticker.publish(absorbed(symbol, 3))
    assert first.hear_of(3, "seq") == [1, 2, 3]
    assert later.subscribe(symbol, features=["snapshot", "seq"])["positions"] == {symbol: 3}
    assert later.hear()["seq"] == 2


def test_no_snapshot_comes_unasked_or_of_nothing(
    opened: Open, ticker: Ticker, key: str, path: str, symbol: str
) -> None:
    silent = opened(path, key=key)
    silent.subscribe(symbol, features=["snapshot"])
    assert silent.is_open
    ticker(symbol, 2)
    plain = opened(path, key=key)
    plain.subscribe(symbol)
    assert plain.is_open


def test_heartbeat_breaks_the_silence_of_who_asked_for_it(
    opened: Open, service: Server, ticker: Ticker, key: str, symbol: str
) -> None:
    async def look_in(seconds: float) -> None:
        for session in authenticated_sockets.all():
            session.check_time(asyncio.get_running_loop().time() + seconds)

    asked, plain = opened(key=key), opened(key=key)
    plain.subscribe(symbol)
    with shortened(StreamConsumer, "HEARTBEAT_AFTER_S", 36_000.0):
        asked.subscribe(symbol, features=["heartbeat"])
        service.run(look_in(18_000))
        ticker(symbol)
        service.run(look_in(37_000))
        assert asked.hear()["symbol"] == symbol
        beat = asked.hear()
    assert (beat["type"], set(beat)) == ("heartbeat", {"type", "time"})
    assert plain.hear()["symbol"] == symbol
    assert plain.is_open


@pytest.mark.parametrize(("path", "is_so"), [(MARKET, True), (ORDERFLOW, False)])
def test_only_prices_are_conflated(opened: Open, key: str, symbol: str, path: str, is_so: bool) -> None:
    opened(path, key=key).subscribe(symbol, features=["latest"])
    sessions = [each for each in authenticated_sockets.all() if each.identity.key == key]
    assert [each.subscriber.wants_latest for each in sessions] == [is_so]  # type: ignore[attr-defined]


def test_each_write_of_a_tick_is_measured_and_each_close_counted_by_its_code(
    opened: Open, ticker: Ticker, key: str, symbol: str
) -> None:
    hub = streams.prices.hub
    measured, refused = hub.latency.count, hub.closed[4401]
    socket, bad = opened(key=key), opened()
    socket.subscribe(symbol)
    for _ in range(3):
        ticker(symbol)
        socket.hear()
    bad.refused({"action": "subscribe", "symbols": [symbol], "api_key": "no-such-key"})
    assert bad.closed == 4401
    assert socket.is_open
    assert (hub.latency.count, hub.closed[4401]) == (measured + 3, refused + 1)
