from __future__ import annotations

import json
from typing import Any

import pytest

from market.prices.records import AbsorptionFound, TickAccepted
from market.streams.hub.backlog import LatestBacklog
from market.streams.protocol.messages import Feature
from market.streams.wire import OutgoingFrame, OutgoingPrice, outgoing_flow, variant_of
from serving.websocket.framing import payloads

NOW_MS = 1_795_000_000_257


def make_price(seq: int = 9, volume: float = 1.0, **fields: Any) -> OutgoingPrice:
    taken = TickAccepted("EURUSD", 1.0841, 1.08424, NOW_MS, volume, seq, **fields)
    return OutgoingPrice(taken, 5, NOW_MS + 2)


@pytest.mark.parametrize(
    ("features", "more"),
    [
        (set(), {}),
        ({"snapshot", "heartbeat", "latest"}, {}),
        ({"seq"}, {"seq": 9}),
        ({"lag"}, {"sent": NOW_MS + 2}),
        ({"lag", "seq"}, {"seq": 9, "sent": NOW_MS + 2}),
    ],
)
def test_frame_has_what_was_asked_for_and_no_more(features: set[Feature], more: dict[str, int]) -> None:
    told = json.loads(make_price().payload(variant_of(features)))

    assert list(told)[:6] == ["symbol", "bid", "ask", "spread", "time", "volume"]
    assert dict(list(told.items())[6:]) == more


def test_order_flow_has_numbers_of_its_own() -> None:
    taken = TickAccepted("EURUSD", 1.0841, 1.08424, NOW_MS, 1.0, 9, 4, 0.0, 1.0, -7.0, 1.0842)
    found = AbsorptionFound("EURUSD", 5, "bid", 1.0841, 250.0, -180.0, 0.00002, 2.61, NOW_MS)

    for record, seq in ((taken, 4), (found, 5)):
        message = outgoing_flow(record, NOW_MS)
        assert isinstance(message, OutgoingFrame)
        assert json.loads(message.payload(variant_of({"seq"})))["seq"] == seq


def test_tick_without_order_flow_is_not_published_there() -> None:
    assert outgoing_flow(TickAccepted("EURUSD", 1.0841, 1.08424, NOW_MS, 1.0, 9), NOW_MS) is None


def test_latest_stands_for_those_before_it_with_their_volumes() -> None:
    backlog = LatestBacklog(0.0, 0)
    for seq, volume in ((1, 0.1), (2, 0.2), (3, 0.4)):
        backlog.fold("market EURUSD", make_price(seq, volume), variant_of({"seq"}))
    notice, tick = (json.loads(text) for text in payloads(backlog.take()))

    assert notice == {"type": "conflated", "symbol": "EURUSD", "dropped": 2}
    assert (tick["seq"], tick["volume"]) == (3, 0.7)


def test_what_stands_for_others_leaves_the_message_of_all_as_it_is() -> None:
    newest = make_price(2, 0.2)
    newest.over(make_price(1, 0.1))

    assert json.loads(newest.payload(0))["volume"] == 0.2
