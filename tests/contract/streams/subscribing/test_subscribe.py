"""The specification's own client, and the envelope of CONTRACT: replies, partial success, leaving."""

from __future__ import annotations

import pytest

from market.prices.records import AbsorptionFound
from tests.client import Server
from tests.contract.streams.client import CANDLES, MARKET, ORDERFLOW, Socket, code_of
from tests.contract.streams.conftest import Open
from tests.contract.streams.ticker import Ticker
from tests.factories import make_account, make_instrument, make_key, make_tier

PRICE = {"symbol", "bid", "ask", "spread", "time", "volume"}
FLOW = {"symbol", "bid_volume", "ask_volume", "delta", "cumulative_delta", "price", "time"}


def test_price_tick_has_exactly_the_fields_of_the_specification(
    opened: Open, ticker: Ticker, key: str, symbol: str
) -> None:
    socket = opened(MARKET)
    socket.send({"action": "subscribe", "symbols": [symbol], "api_key": key})
    socket.hear()
    tick = ticker(symbol)[0]

    heard = socket.hear()

    assert heard == {
        "symbol": symbol,
        "bid": tick.bid,
        "ask": tick.ask,
        "spread": 0.0002,
        "time": tick.time_ms,
        "volume": 1.0,
    }
    assert type(heard["time"]) is int


def test_order_flow_tick_has_exactly_the_fields_of_the_specification(
    opened: Open, ticker: Ticker, key: str, symbol: str
) -> None:
    socket = opened(ORDERFLOW)
    socket.send({"action": "subscribe", "symbols": [symbol], "api_key": key})
    socket.hear()
    ticker(symbol)
    last = ticker(symbol)[0]

    heard = socket.hear()

    assert set(heard) == FLOW
    assert (heard["symbol"], heard["time"]) == (symbol, last.time_ms)
    assert heard["delta"] == heard["ask_volume"] - heard["bid_volume"] == heard["cumulative_delta"] == 1


def test_absorption_signal_has_the_fields_of_the_contract(
    opened: Open, ticker: Ticker, key: str, symbol: str
) -> None:
    socket = opened(ORDERFLOW)
    socket.send({"action": "subscribe", "symbols": [symbol], "api_key": key})
    socket.hear()
    ticker.publish(AbsorptionFound(symbol, 1, "bid", 1.0841, 250.0, -180.0, 0.00002, 2.61, 1_795_167_165_000))

    assert socket.hear() == {
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


def test_reply_names_all_that_is_subscribed(opened: Open, key: str, path: str, symbol: str) -> None:
    stream = path.rpartition("/")[2]
    assert opened(path).subscribe(symbol, api_key=key) == {
        "type": "subscribed",
        "stream": stream,
        "symbols": [symbol],
        "rejected": [],
        **({"timeframes": ["1m"]} if path == CANDLES else {}),
    }


def test_reply_comes_before_any_data(opened: Open, ticker: Ticker, key: str, symbol: str) -> None:
    ticker(symbol)
    socket = opened(key=key)
    socket.subscribe(symbol, features=["snapshot"])
    ticker(symbol)
    assert set(socket.hear()) == PRICE


def test_key_of_the_handshake_is_enough(opened: Open, key: str, path: str, symbol: str) -> None:
    assert opened(path, key=key).subscribe(symbol)["type"] == "subscribed"


def test_bad_key_of_a_message_wins_over_a_good_one_of_the_handshake(
    opened: Open, key: str, symbol: str
) -> None:
    socket = opened(key=key)
    refused = socket.refused({"action": "subscribe", "symbols": [symbol], "api_key": "x"})
    assert code_of(refused) == ("invalid_api_key", True, False)
    assert socket.closed == 4401


def test_good_key_of_a_message_wins_over_a_bad_one_of_the_handshake(
    opened: Open, key: str, symbol: str
) -> None:
    assert opened(key="x").subscribe(symbol, api_key=key)["type"] == "subscribed"


def test_key_in_the_url_is_not_read(opened: Open, key: str, symbol: str) -> None:
    socket = opened(f"{MARKET}?api_key={key}")
    assert socket.refused({"action": "subscribe", "symbols": [symbol]})["error"]["code"] == "invalid_api_key"


@pytest.mark.parametrize("action", ["subscribe", "unsubscribe", "list", "ping"])
def test_every_action_needs_a_key(opened: Open, path: str, symbol: str, action: str) -> None:
    socket = opened(path)
    assert code_of(socket.refused({"action": action, "symbols": [symbol], "id": 3})) == (
        "invalid_api_key",
        True,
        False,
    )
    assert socket.closed == 4401


def test_key_of_another_account_is_an_invalid_message(opened: Open, key: str, symbol: str) -> None:
    socket = opened(key=key)
    socket.subscribe(symbol)
    other = make_key(make_account(tier=make_tier("roomy")))
    refused = socket.refused({"action": "ping", "api_key": other, "id": "a"})
    assert (code_of(refused), refused["id"]) == (("invalid_message", False, False), "a")
    assert socket.is_open


def test_another_key_of_the_same_account_is_taken(opened: Open, account: object, key: str) -> None:
    socket = opened(key=key)
    assert socket.ask({"action": "ping"})["type"] == "pong"
    other = make_key(account)  # type: ignore[arg-type]
    assert socket.ask({"action": "ping", "api_key": other})["type"] == "pong"


def test_unknown_symbols_are_rejected_and_the_others_flow(
    opened: Open, ticker: Ticker, key: str, symbol: str
) -> None:
    socket = opened(key=key)
    reply = socket.subscribe("nope", symbol.lower(), "NOPE")
    assert (reply["symbols"], reply["rejected"]) == (
        [symbol],
        [{"symbol": word, "code": "symbol_not_found"} for word in ("nope", "NOPE")],
    )
    ticker(symbol)
    assert socket.hear()["symbol"] == symbol


def test_socket_is_authenticated_when_all_symbols_are_unknown(opened: Open, key: str) -> None:
    socket = opened()
    assert socket.subscribe("NOPE", api_key=key)["symbols"] == []
    assert socket.is_open


def test_inactive_instrument_is_unknown(opened: Open, key: str) -> None:
    make_instrument("ASLEEP", active=False)
    assert opened(key=key).subscribe("ASLEEP")["symbols"] == []


def test_subscriptions_add_up_and_are_told_sorted(opened: Open, key: str, symbol: str) -> None:
    first = make_instrument(f"A{symbol}").symbol
    socket = opened(key=key)
    socket.subscribe(symbol)
    assert socket.subscribe(first)["symbols"] == [first, symbol]
    assert socket.ask({"action": "list"}) == {"type": "subscriptions", "symbols": [first, symbol]}


def test_repeated_subscribe_brings_nothing_twice(
    opened: Open, ticker: Ticker, key: str, tick_path: str, symbol: str
) -> None:
    socket = opened(tick_path, key=key)
    socket.subscribe(symbol)
    assert socket.subscribe(symbol)["symbols"] == [symbol]
    ticker(symbol, 2)
    # Nothing comes before the first tick that would tell who pressed, so it is no order flow.
    numbers = 1 if tick_path == ORDERFLOW else 2
    assert [socket.hear()["symbol"] for _ in range(numbers)] == [symbol] * numbers
    assert socket.is_open


def test_nothing_comes_of_what_was_unsubscribed(opened: Open, ticker: Ticker, key: str, symbol: str) -> None:
    other = make_instrument(f"B{symbol}").symbol
    socket = opened(key=key)
    socket.subscribe(symbol, other)
    assert socket.ask({"action": "unsubscribe", "symbols": [symbol], "id": 8}) == {
        "type": "unsubscribed",
        "symbols": [other],
        "id": 8,
    }
    ticker(symbol)
    ticker(other)
    assert socket.hear()["symbol"] == other


def test_unsubscribe_without_symbols_leaves_all(
    opened: Open, ticker: Ticker, key: str, path: str, symbol: str
) -> None:
    socket = opened(path, key=key)
    socket.subscribe(symbol)
    assert socket.ask({"action": "unsubscribe"})["symbols"] == []
    ticker(symbol, 2)
    assert socket.is_open


@pytest.mark.parametrize("sent", [7, "seven", 0, ""])
def test_id_is_echoed(opened: Open, key: str, sent: int | str) -> None:
    assert opened(key=key).ask({"action": "ping", "id": sent}) == {"type": "pong", "id": sent}


def test_id_that_was_not_sent_is_not_answered(opened: Open, key: str) -> None:
    assert opened(key=key).ask({"action": "ping"}) == {"type": "pong"}


def test_star_is_refused_on_the_market(opened: Open, key: str) -> None:
    refused = opened(key=key).refused({"action": "subscribe", "symbols": ["*"]})
    assert (code_of(refused), refused["error"]["field"]) == (("invalid_message", False, False), "symbols")


def test_symbols_are_required_on_the_market(opened: Open, key: str) -> None:
    assert opened(key=key).refused({"action": "subscribe"})["error"]["field"] == "symbols"


@pytest.mark.parametrize("named", [{}, {"symbols": ["*"]}])
def test_all_of_the_order_flow(
    opened: Open, ticker: Ticker, key: str, symbol: str, named: dict[str, list[str]]
) -> None:
    socket = opened(ORDERFLOW, key=key)
    assert socket.ask({"action": "subscribe", **named})["symbols"] == ["*"]
    ticker(symbol, 2)
    assert socket.hear()["symbol"] == symbol


def test_all_of_the_order_flow_has_later_instruments_too(opened: Open, ticker: Ticker, key: str) -> None:
    socket = opened(ORDERFLOW, key=key)
    socket.subscribe()
    later = make_instrument(f"LATER{len(key)}").symbol
    ticker(later, 2)
    assert socket.hear()["symbol"] == later


def test_all_besides_a_symbol_brings_its_frames_once(
    opened: Open, ticker: Ticker, key: str, symbol: str
) -> None:
    socket = opened(ORDERFLOW, key=key)
    socket.subscribe(symbol)
    assert socket.subscribe()["symbols"] == ["*"]
    ticker(symbol, 3)
    assert [socket.hear()["cumulative_delta"] for _ in range(2)] == [1, 2]
    assert socket.is_open


def test_two_hundred_symbols_are_taken_and_one_more_is_not(opened: Open, key: str, path: str) -> None:
    socket = opened(path, key=key)
    names = [f"NOPE{number}" for number in range(201)]
    assert len(socket.subscribe(*names[:200])["rejected"]) == 200
    refused = socket.refused({"action": "subscribe", "symbols": names})
    assert (refused["error"]["code"], refused["error"]["max"]) == ("invalid_message", 200)


def test_one_socket_hears_nothing_of_the_other_stream(
    opened: Open, ticker: Ticker, key: str, symbol: str
) -> None:
    socket = opened(MARKET, key=key)
    socket.subscribe(symbol)
    ticker(symbol, 3)
    assert [set(socket.hear()) for _ in range(3)] == [PRICE] * 3
    assert socket.is_open


def test_path_may_end_in_a_slash(opened: Open, key: str, path: str, symbol: str) -> None:
    assert opened(f"{path}/", key=key).subscribe(symbol)["type"] == "subscribed"


def test_page_of_another_origin_gets_a_socket_and_its_cookies_open_nothing(
    service: Server, symbol: str
) -> None:
    with Socket(service, Origin="https://elsewhere.example", Cookie="sessionid=x") as socket:
        refused = socket.refused({"action": "subscribe", "symbols": [symbol]})
        assert refused["error"]["code"] == "invalid_api_key"
