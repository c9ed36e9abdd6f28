"""One of each message and more, as Structs or as what goes over the wire."""

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType, to_builtins

from market.streams.protocol import replies
from market.streams.protocol.messages import List, Ping, Subscribe, Unsubscribe
from market.streams.protocol.refusals import Code, Error, StreamRefused, invalid, too_many_streams
from market.streams.protocol.subscriptions import Rejected
from market.streams.wire import AbsorptionSignal, CandleUpdate, OrderFlowTick, PriceTick, StreamedCandle

Examples = dict[type[msgspec.Struct], dict[str, Any]]
"""By type and then by title."""
NOW_MS = 1_795_167_164_118
KEY = "tw_live_…"
EPOCH = "8c1f0a5be29d"
TICK = PriceTick("EURUSD", 1.08412, 1.08424, 0.00012, NOW_MS, 1.0)
MINUTE = CandleUpdate(
    "EURUSD",
    "1m",
    StreamedCandle("2026-11-20T14:03:00Z", 1.08409, 1.08417, 1.08402, 1.08412, 63.0),
    closed=True,
    time=1_795_183_440_000,
)
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


CLIENT_EXAMPLES: Examples = {
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
        "Candles of two timeframes, and how they form": {
            "action": "subscribe",
            "symbols": ["EURUSD"],
            "timeframes": ["1m", "1h"],
            "api_key": KEY,
            "features": ["seq", "snapshot"],
            "events": ["forming"],
            "resume": {"epoch": EPOCH, "positions": {"EURUSD/1m": 1_204, "EURUSD/1h": 20}},
        },
        "All of the order flow, the signals or the news": {"action": "subscribe", "api_key": KEY},
        "Signals, and how they end": {
            "action": "subscribe",
            "symbols": ["*"],
            "api_key": KEY,
            "events": ["signal.closed"],
            "since": "6f1c2f5e-8f0b-4a53-9d0e-2b8f6f6f9a01",
            "takeover": True,
        },
        "News of two categories": {
            "action": "subscribe",
            "categories": ["gold", "macro"],
            "api_key": KEY,
            "since": "3171",
        },
    },
    Unsubscribe: {
        "Some": {"action": "unsubscribe", "symbols": ["XAUUSD"], "id": 8},
        "All": {"action": "unsubscribe"},
    },
    List: {"List": {"action": "list", "id": 9}},
    Ping: {"Ping": {"action": "ping", "id": "alive?"}},
}
_plain, _closed = to_builtins(TICK), to_builtins(MINUTE)


def _numbered(seq: int, unrecovered: list[str] | UnsetType = UNSET) -> replies.Subscribed:
    at = {"EURUSD": seq}
    return replies.subscribed(
        "market", ["EURUSD"], [], NOW_MS, 7, epoch=EPOCH, positions=at, unrecovered=unrecovered
    )


def _signals(unrecovered: list[str] | UnsetType = UNSET) -> replies.Subscribed:
    return replies.subscribed("signals", ["*"], [], NOW_MS, since="after:9041", unrecovered=unrecovered)


def _notice(code: replies.NoticeCode, symbols: list[str] | UnsetType = UNSET) -> replies.Notice:
    return replies.Notice(code=code, symbols=symbols, time=NOW_MS)


_others: tuple[Code, ...] = (
    "https_required",
    "invalid_api_key",
    "subscribe_timeout",
    "taken_over",
    "stream_closed",
    "too_many_messages",
    "slow_consumer",
    "internal_error",
)
SERVER_EXAMPLES: Examples = {
    PriceTick: {
        "Without features": _plain,
        "With seq": _plain | {"seq": 48_213},
        "With seq and lag": _plain | {"seq": 48_213, "sent": NOW_MS + 2},
    },
    OrderFlowTick: {"A buyer": OrderFlowTick("EURUSD", 0.0, 1.0, 1.0, -126.0, 1.08418, NOW_MS)},
    CandleUpdate: {
        "A minute was closed": _closed,
        "With seq": _closed | {"seq": 1_205},
        "It forms": _closed | {"closed": False, "time": 1_795_183_407_250},
    },
    AbsorptionSignal: {"Sellers met the bid": ABSORPTION},
    replies.Subscribed: {
        "Some are unknown": replies.subscribed("market", ["EURUSD"], [Rejected("NOPE")], NOW_MS, 7),
        "All of the order flow": replies.subscribed("orderflow", ["*"], [], NOW_MS),
        "With seq": _numbered(48_213),
        "Candles with seq": replies.subscribed(
            "candles",
            ["EURUSD"],
            [],
            NOW_MS,
            timeframes=["1m", "1h"],
            epoch=EPOCH,
            positions={"EURUSD/1h": 20, "EURUSD/1m": 1_204},
        ),
        "What was missed follows": _numbered(48_211, []),
        "Too much was missed": _numbered(48_213, ["EURUSD"]),
        "Signals from now on": _signals(),
        "The signals after since follow": _signals([]),
        "News of two categories": replies.subscribed(
            "news", ["*"], [], NOW_MS, categories=["gold", "macro"], since="after:9044"
        ),
    },
    replies.Unsubscribed: {"One is left": replies.Unsubscribed(symbols=["EURUSD"], id=8, time=NOW_MS)},
    replies.Listed: {"One": replies.Listed(symbols=["EURUSD"], id=9, time=NOW_MS)},
    replies.Pong: {"Pong": replies.Pong(id="alive?", time=NOW_MS)},
    replies.Heartbeat: {"Heartbeat": replies.Heartbeat(time=NOW_MS)},
    replies.Notice: {
        "Restart": _notice("restarting"),
        "No engine is heard": _notice("stale", ["EURUSD", "XAUUSD"]),
        "It is heard again": _notice("live", ["EURUSD", "XAUUSD"]),
        "Real prices begin": _notice("new_series", ["EURUSD"]),
        "Not offered any more": _notice("deactivated", ["EURUSD"]),
        "Offered again": _notice("activated", ["EURUSD"]),
    },
    replies.Gap: {
        "A new numbering began": replies.Gap(
            symbols=["EURUSD"], epoch="f09e2b7711ac", positions={"EURUSD": 12}, time=NOW_MS
        )
    },
    replies.Conflated: {"Three were left out": replies.Conflated(symbol="EURUSD", dropped=3)},
    Error: {
        "invalid_message": invalid(
            "symbols must be a list of 1 to 200 instrument codes.", "symbols", max=200
        ).frame(NOW_MS),
        "stream_limit_exceeded": too_many_streams(2, 2).frame(NOW_MS),
        **{code: StreamRefused(code).frame(NOW_MS) for code in _others},
    },
}
