"""One of each message, as it goes over the wire. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from accounts.open_streams.stream_slots import RETRY_AFTER_S
from core.plain_json import encode
from market.streams.protocol import refusals, replies
from market.streams.protocol.messages import List, Ping, Subscribe, Unsubscribe
from market.streams.protocol.refusals import Code, StreamRefused, invalid
from market.streams.protocol.subscriptions import Rejected
from market.streams.wire import AbsorptionSignal, OrderFlowTick, PriceTick, extended

Examples = dict[type[msgspec.Struct], dict[str, Any]]
"""By type and then by title."""
NOW_MS = 1_795_167_164_118
KEY = "tw_live_…"
EPOCH = "8c1f0a5be29d"
TICK = PriceTick("EURUSD", 1.08412, 1.08424, 0.00012, NOW_MS, 1.0)
ABSORPTION = AbsorptionSignal(
    symbol="EURUSD",
    side="bid",
    price=1.08409,
    volume=250.0,
    delta=-180.0,
    price_range=0.00002,
    window_ms=5000,
    strength=2.61,
    time=1_795_167_165_000,
)


def wire(message: msgspec.Struct | bytes) -> Any:
    return msgspec.json.decode(message if isinstance(message, bytes) else encode(message))


SAID: Examples = {
    Subscribe: {
        "Two instruments": {"action": "subscribe", "symbols": ["EURUSD", "XAUUSD"], "api_key": KEY},
        "With features": {
            "action": "subscribe",
            "symbols": ["EURUSD", "XAUUSD"],
            "api_key": KEY,
            "id": 7,
            "features": ["seq", "snapshot"],
        },
        "After a lost connection": {
            "action": "subscribe",
            "symbols": ["EURUSD"],
            "api_key": KEY,
            "features": ["seq"],
            "resume": {"epoch": EPOCH, "positions": {"EURUSD": 48_211}},
        },
        "All symbols of the order flow or the signals": {"action": "subscribe", "api_key": KEY},
        "Signals, and how they end": {
            "action": "subscribe",
            "symbols": ["*"],
            "api_key": KEY,
            "events": ["signal.closed"],
            "since": "6f1c2f5e-8f0b-4a53-9d0e-2b8f6f6f9a01",
            "takeover": True,
        },
    },
    Unsubscribe: {
        "Some": {"action": "unsubscribe", "symbols": ["XAUUSD"], "id": 8},
        "All": {"action": "unsubscribe"},
    },
    List: {"List": {"action": "list", "id": 9}},
    Ping: {"Ping": {"action": "ping", "id": "alive?"}},
}
_plain = encode(TICK)
_numbered = replies.Continuation(epoch=EPOCH, positions={"EURUSD": 48_213})
_recovered = replies.Continuation(epoch=EPOCH, positions={"EURUSD": 48_211}, unrecovered=[])
_all_told = replies.Continuation(since="after:9041", unrecovered=[])
_from_now = replies.Continuation(since="after:9041")
_lost = replies.Continuation(epoch=EPOCH, positions={"EURUSD": 48_213}, unrecovered=["EURUSD"])


def _subscribed(goes_on: replies.Continuation = replies.STARTS_LIVE) -> Any:
    return wire(replies.subscribed("market", ["EURUSD"], [], NOW_MS, 7, goes_on))


def _error(refused: StreamRefused) -> Any:
    return wire(refusals.error(refused, NOW_MS))


_others: tuple[Code, ...] = (
    "https_required",
    "invalid_api_key",
    "subscribe_timeout",
    "taken_over",
    "too_many_messages",
    "slow_consumer",
    "internal_error",
)
TOLD: Examples = {
    PriceTick: {
        "Without features": wire(TICK),
        "With seq": wire(extended(_plain, seq=48_213)),
        "With seq and lag": wire(extended(_plain, seq=48_213, sent_ms=NOW_MS + 2)),
    },
    OrderFlowTick: {
        "A buyer": wire(OrderFlowTick("EURUSD", 0.0, 1.0, 1.0, -126.0, 1.08418, NOW_MS)),
    },
    AbsorptionSignal: {"Sellers met the bid": wire(ABSORPTION)},
    replies.Subscribed: {
        "Some are unknown": wire(replies.subscribed("market", ["EURUSD"], [Rejected("NOPE")], NOW_MS, 7)),
        "All of the order flow": wire(replies.subscribed("orderflow", ["*"], [], NOW_MS)),
        "With seq": _subscribed(_numbered),
        "What was missed follows": _subscribed(_recovered),
        "Too much was missed": _subscribed(_lost),
        "Signals from now on": wire(replies.subscribed("signals", ["*"], [], NOW_MS, goes_on=_from_now)),
        "The signals after since follow": wire(
            replies.subscribed("signals", ["*"], [], NOW_MS, goes_on=_all_told)
        ),
    },
    replies.Unsubscribed: {"One is left": wire(replies.unsubscribed(["EURUSD"], NOW_MS, 8))},
    replies.Listed: {"One": wire(replies.listed(["EURUSD"], NOW_MS, 9))},
    replies.Pong: {"Pong": wire(replies.pong(NOW_MS, "alive?"))},
    replies.Heartbeat: {"Heartbeat": wire(replies.heartbeat(NOW_MS))},
    replies.Notice: {
        "Restart": wire(replies.restarting(NOW_MS)),
        "No engine is heard": wire(replies.notice("stale", ["EURUSD", "XAUUSD"], NOW_MS)),
        "It is heard again": wire(replies.notice("live", ["EURUSD", "XAUUSD"], NOW_MS)),
        "Real prices begin": wire(replies.notice("new_series", ["EURUSD"], NOW_MS)),
        "Not offered any more": wire(replies.notice("deactivated", ["EURUSD"], NOW_MS)),
    },
    replies.Gap: {
        "The numbering began anew": wire(replies.gap(["EURUSD"], "f09e2b7711ac", {"EURUSD": 12}, NOW_MS))
    },
    replies.Conflated: {"Three were left out": wire(replies.conflated("EURUSD", 3))},
    refusals.Error: {
        "invalid_message": _error(
            invalid("symbols must be a list of 1 to 200 instrument codes.", "symbols", max=200)
        ),
        "stream_limit_exceeded": _error(
            StreamRefused("stream_limit_exceeded", limit=2, open=2, retry_after=RETRY_AFTER_S)
        ),
        **{code: _error(StreamRefused(code)) for code in _others},
    },
}
