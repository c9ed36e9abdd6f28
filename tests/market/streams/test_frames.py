from __future__ import annotations

import json
import re
from typing import Any

import pytest

from market.prices.records import AbsorptionFound, TickAccepted
from market.streams.wire import SENT, SEQ, absorption, extended, order_flow_tick, price_tick

NOW_MS = 1_795_000_000_257
# As the specification lists them, in its order.
PRICE = ["symbol", "bid", "ask", "spread", "time", "volume"]
FLOW = ["symbol", "bid_volume", "ask_volume", "delta", "cumulative_delta", "price", "time"]


def make_taken(**fields: Any) -> TickAccepted:
    return TickAccepted(
        **{
            "symbol": "EURUSD",
            "bid": 1.0841,
            "ask": 1.08424,
            "time_ms": NOW_MS,
            "volume": 1.0,
            "seq": 9,
            **fields,
        }
    )


def make_flow(**fields: Any) -> TickAccepted:
    defaults = {
        "flow_seq": 4,
        "bid_volume": 0.0,
        "ask_volume": 2.5,
        "cumulative_delta": -7.5,
        "price": 1.08424,
    }
    return make_taken(**defaults | fields)


def test_price_tick_has_exactly_the_specified_fields() -> None:
    assert price_tick(make_flow(), 5) == (
        b'{"symbol":"EURUSD","bid":1.0841,"ask":1.08424,"spread":0.00014,"time":1795000000257,"volume":1.0}'
    )
    assert list(json.loads(price_tick(make_taken(), 5))) == PRICE


@pytest.mark.parametrize(
    ("bid", "ask", "digits", "spread"),
    [
        (1.1, 1.3, 1, 0.2),
        (154.123, 154.125, 3, 0.002),
        (2651.4, 2651.4, 1, 0.0),
        (60_000.1, 60_000.3, 1, 0.2),
    ],
)
def test_spread_is_rounded_to_the_digits(bid: float, ask: float, digits: int, spread: float) -> None:
    assert json.loads(price_tick(make_taken(bid=bid, ask=ask), digits))["spread"] == spread


def test_small_numbers_are_json_numbers() -> None:
    frame = price_tick(make_taken(bid=1.0841, ask=1.08411, volume=0.00000001), 5)

    assert json.loads(frame)["spread"] == 0.00001
    assert json.loads(frame)["volume"] == 0.00000001


def test_order_flow_tick_has_exactly_the_specified_fields() -> None:
    assert order_flow_tick(make_flow()) == (
        b'{"symbol":"EURUSD","bid_volume":0.0,"ask_volume":2.5,"delta":2.5,"cumulative_delta":-7.5,'
        b'"price":1.08424,"time":1795000000257}'
    )
    assert list(json.loads(order_flow_tick(make_flow()) or b"{}")) == FLOW


def test_delta_is_ask_minus_bid_volume() -> None:
    frame = order_flow_tick(make_flow(bid_volume=3.0, ask_volume=0.0)) or b"{}"

    assert json.loads(frame)["delta"] == -3.0


def test_tick_without_order_flow_makes_no_frame_of_it() -> None:
    assert order_flow_tick(make_taken()) is None


def test_absorption_is_as_the_contract_writes_it() -> None:
    found = AbsorptionFound("EURUSD", 5, "bid", 1.0841, 250.0, -180.0, 0.00002, 2.61, 1_795_000_005_000)

    assert absorption(found) == (
        b'{"type":"absorption","symbol":"EURUSD","side":"bid","price":1.0841,"volume":250.0,"delta":-180.0,'
        b'"price_range":0.00002,"window_ms":5000,"strength":2.61,"time":1795000005000}'
    )


def test_frame_gets_what_was_asked_for_at_its_end() -> None:
    frame = b'{"symbol":"EURUSD","volume":1.0}'

    assert extended(frame, 9, NOW_MS, 0) == frame
    assert extended(frame, 9, NOW_MS, SEQ) == b'{"symbol":"EURUSD","volume":1.0,"seq":9}'
    assert extended(frame, 9, NOW_MS, SENT) == b'{"symbol":"EURUSD","volume":1.0,"sent":1795000000257}'
    assert extended(frame, 9, NOW_MS, SEQ | SENT) == (
        b'{"symbol":"EURUSD","volume":1.0,"seq":9,"sent":1795000000257}'
    )


@pytest.mark.parametrize(
    ("fields", "digits"),
    [
        ({"bid": 3e-08, "ask": 5e-08}, 8),
        ({"bid": 1.00000001, "ask": 1.00000004}, 8),
        ({"volume": 1e-08}, 5),
    ],
)
def test_small_prices_and_volumes_have_no_exponent(fields: dict[str, float], digits: int) -> None:
    frame = price_tick(make_taken(**fields), digits)

    assert b"e-" not in frame
    assert {name: json.loads(frame)[name] for name in fields} == fields


@pytest.mark.parametrize(
    "fields",
    [
        {"ask_volume": 1e-08, "cumulative_delta": 5.0},
        {"cumulative_delta": -1e-08},
        {"cumulative_delta": 1e16},
        {"cumulative_delta": -2.5e17},
        {"price": 3e-08},
    ],
)
def test_order_flow_has_no_exponent(fields: dict[str, float]) -> None:
    frame = order_flow_tick(make_flow(**fields)) or b""

    assert not re.search(rb"[0-9]e[-+0-9]", frame)
    assert {name: json.loads(frame)[name] for name in fields} == fields


def test_absorption_has_no_exponent() -> None:
    found = AbsorptionFound("PEPEUSD", 7, "bid", 3e-08, 1e16, -1e16, 1e-08, 2.6, NOW_MS)

    assert not re.search(rb"[0-9]e[-+0-9]", absorption(found))
