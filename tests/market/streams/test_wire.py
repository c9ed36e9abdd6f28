"""Data frames: the fields of the specification in its order, and what a client asked for beyond them."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from market.prices.records import AbsorptionFound, TickAccepted
from market.streams.hub.subscribers import LatestBacklog
from market.streams.protocol.messages import Feature
from market.streams.wire import (
    OutgoingFrame,
    OutgoingPrice,
    absorption,
    order_flow_tick,
    outgoing_flow,
    price_tick,
    variant_of,
)
from serving.websocket.connection import payloads

NOW_MS = 1_795_000_000_257
PRICE = b'{"symbol":"EURUSD","bid":1.0841,"ask":1.08424,"spread":0.00014,"time":1795000000257,"volume":1.0}'
FLOW = (
    b'{"symbol":"EURUSD","bid_volume":0.0,"ask_volume":2.5,"delta":2.5,"cumulative_delta":-7.5,'
    b'"price":1.08424,"time":1795000000257}'
)
QUOTED: dict[str, Any] = {
    "symbol": "EURUSD",
    "bid": 1.0841,
    "ask": 1.08424,
    "time_ms": NOW_MS,
    "volume": 1.0,
    "seq": 9,
}
TRADED = {"flow_seq": 4, "bid_volume": 0.0, "ask_volume": 2.5, "cumulative_delta": -7.5, "price": 1.08424}
EXPONENT = re.compile(rb"[0-9]e[-+0-9]")


def make_taken(**fields: Any) -> TickAccepted:
    return TickAccepted(**{**QUOTED, **fields})


def make_price(seq: int = 9, volume: float = 1.0) -> OutgoingPrice:
    return OutgoingPrice(make_taken(seq=seq, volume=volume), 5, NOW_MS + 2)


@pytest.mark.parametrize(
    ("features", "more"),
    [
        (set(), b""),
        ({"snapshot", "heartbeat", "latest"}, b""),
        ({"seq"}, b',"seq":9'),
        ({"lag"}, b',"sent":1795000000259'),
        ({"lag", "seq"}, b',"seq":9,"sent":1795000000259'),
    ],
)
def test_price_tick_has_the_specified_fields_and_what_was_asked_for(
    features: set[Feature], more: bytes
) -> None:
    assert make_price().payload(variant_of(features)) == PRICE[:-1] + more + b"}"


@pytest.mark.parametrize(
    ("bid", "ask", "digits", "spread"),
    [
        (1.1, 1.3, 1, 0.2),
        (154.123, 154.125, 3, 0.002),
        (2651.4, 2651.4, 1, 0.0),
        (60_000.1, 60_000.3, 1, 0.2),
        (1.0841, 1.08411, 5, 0.00001),
    ],
)
def test_spread_is_rounded_to_the_digits(bid: float, ask: float, digits: int, spread: float) -> None:
    assert json.loads(price_tick(make_taken(bid=bid, ask=ask), digits))["spread"] == spread


def test_order_flow_has_the_specified_fields_and_numbers_of_its_own() -> None:
    taken, found = make_taken(**TRADED), AbsorptionFound("EURUSD", 5, "bid", 1.1, 9.0, -1.0, 0.1, 2.6, NOW_MS)

    assert order_flow_tick(taken) == FLOW
    for record, seq in ((taken, 4), (found, 5)):
        message = outgoing_flow(record, NOW_MS)
        assert isinstance(message, OutgoingFrame)
        assert json.loads(message.payload(variant_of({"seq"})))["seq"] == seq
    sold = order_flow_tick(make_taken(**TRADED | {"bid_volume": 3.0, "ask_volume": 0.0})) or b"{}"
    assert json.loads(sold)["delta"] == -3.0
    assert outgoing_flow(make_taken(), NOW_MS) is None


@pytest.mark.parametrize(
    ("fields", "digits"),
    [
        ({"bid": 3e-08, "ask": 5e-08}, 8),
        ({"bid": 1.00000001, "ask": 1.00000004}, 8),
        ({"volume": 1e-08}, 5),
        ({"ask_volume": 1e-08, "cumulative_delta": 5.0}, None),
        *(({"cumulative_delta": summed}, None) for summed in (-1e-08, 1e16, -2.5e17)),
        ({"price": 3e-08}, None),
    ],
)
def test_no_number_has_an_exponent(fields: dict[str, float], digits: int | None) -> None:
    taken = make_taken(**TRADED | fields)
    frame = order_flow_tick(taken) if digits is None else price_tick(taken, digits)

    assert frame is not None
    assert not EXPONENT.search(frame)
    assert {name: json.loads(frame)[name] for name in fields} == fields
    found = AbsorptionFound("PEPEUSD", 7, "bid", 3e-08, 1e16, -1e16, 1e-08, 2.6, NOW_MS)
    assert not EXPONENT.search(absorption(found))


def test_latest_stands_for_those_before_it_with_their_volumes_and_leaves_them_as_they_are() -> None:
    backlog, prices = LatestBacklog(0.0, 0), [make_price(1, 0.1), make_price(2, 0.2), make_price(3, 0.4)]
    for price in prices:
        backlog.fold("market EURUSD", price, variant_of({"seq"}))
    notice, tick = (json.loads(text) for text in payloads(backlog.take()))

    assert notice == {"type": "conflated", "symbol": "EURUSD", "dropped": 2}
    assert (tick["seq"], tick["volume"]) == (3, 0.7)
    assert json.loads(prices[-1].payload(0))["volume"] == 0.4
