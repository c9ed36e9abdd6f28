"""One of each message, as it goes over the wire. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from accounts.plain_json import encode
from accounts.slots import RETRY_AFTER_S

from . import protocol
from .frames import AbsorptionSignal, OrderFlowTick, PriceTick, extended
from .messages import List, Ping, Subscribe, Unsubscribe
from .refusals import Code, Refused, invalid
from .subscriptions import Rejected

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
_numbered = protocol.Continuation(epoch=EPOCH, positions={"EURUSD": 48_213})
_recovered = protocol.Continuation(epoch=EPOCH, positions={"EURUSD": 48_211}, unrecovered=[])
_all_told = protocol.Continuation(since="after:9041", unrecovered=[])
_from_now = protocol.Continuation(since="after:9041")
_lost = protocol.Continuation(epoch=EPOCH, positions={"EURUSD": 48_213}, unrecovered=["EURUSD"])


def _subscribed(goes_on: protocol.Continuation = protocol.STARTS_LIVE) -> Any:
    return wire(protocol.subscribed("market", ["EURUSD"], [], NOW_MS, 7, goes_on))


def _error(refused: Refused) -> Any:
    return wire(protocol.error(refused, NOW_MS))


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
    protocol.Subscribed: {
        "Some are unknown": wire(protocol.subscribed("market", ["EURUSD"], [Rejected("NOPE")], NOW_MS, 7)),
        "All of the order flow": wire(protocol.subscribed("orderflow", ["*"], [], NOW_MS)),
        "With seq": _subscribed(_numbered),
        "What was missed follows": _subscribed(_recovered),
        "Too much was missed": _subscribed(_lost),
        "Signals from now on": wire(protocol.subscribed("signals", ["*"], [], NOW_MS, goes_on=_from_now)),
        "The signals after since follow": wire(
            protocol.subscribed("signals", ["*"], [], NOW_MS, goes_on=_all_told)
        ),
    },
    protocol.Unsubscribed: {"One is left": wire(protocol.unsubscribed(["EURUSD"], NOW_MS, 8))},
    protocol.Listed: {"One": wire(protocol.listed(["EURUSD"], NOW_MS, 9))},
    protocol.Pong: {"Pong": wire(protocol.pong(NOW_MS, "alive?"))},
    protocol.Heartbeat: {"Heartbeat": wire(protocol.heartbeat(NOW_MS))},
    protocol.Notice: {
        "Restart": wire(protocol.restarting(NOW_MS)),
        "No engine is heard": wire(protocol.notice("stale", ["EURUSD", "XAUUSD"], NOW_MS)),
        "It is heard again": wire(protocol.notice("live", ["EURUSD", "XAUUSD"], NOW_MS)),
        "Real prices begin": wire(protocol.notice("new_series", ["EURUSD"], NOW_MS)),
        "Not offered any more": wire(protocol.notice("deactivated", ["EURUSD"], NOW_MS)),
    },
    protocol.Gap: {
        "The numbering began anew": wire(protocol.gap(["EURUSD"], "f09e2b7711ac", {"EURUSD": 12}, NOW_MS))
    },
    protocol.Conflated: {"Three were left out": wire(protocol.conflated("EURUSD", 3))},
    protocol.Error: {
        "invalid_message": _error(
            invalid("symbols must be a list of 1 to 200 instrument codes.", "symbols", max=200)
        ),
        "stream_limit_exceeded": _error(
            Refused("stream_limit_exceeded", limit=2, open=2, retry_after=RETRY_AFTER_S)
        ),
        **{code: _error(Refused(code)) for code in _others},
    },
}
