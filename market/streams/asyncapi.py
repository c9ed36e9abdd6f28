"""The AsyncAPI document, made of the types that read and write the messages, with examples that those types
wrote."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType, to_builtins

from instruments.facts import TEST_SYMBOL
from market.engine.bus.journal import KEEP_MS, MAX_FRAMES
from market.streams.chaos import BURST as FRAMES_AT_ONCE
from market.streams.chaos import CYCLE_MS, EVERY, STALE_AFTER_MS
from market.streams.hub.subscribers import MOST_BYTES, MOST_FRAMES, STUCK_AFTER_S
from market.streams.protocol import messages, subscriptions
from market.streams.protocol.messages import (
    CANDLES,
    CLOSES,
    KINDS,
    MARKET,
    MAX_SYMBOLS,
    ONE_SOCKET,
    ORDERFLOW,
    REFUSALS,
    TIMEFRAMES,
    TOGETHER,
    Chaos,
    Code,
    Error,
    Feature,
    List,
    Ping,
    StreamKind,
    StreamRefused,
    Subscribe,
    Unsubscribe,
    invalid,
    too_many_streams,
)
from market.streams.protocol.reading import A_SECOND, BURST, INVALID_WITHIN_MS, MAX_BYTES, MAX_INVALID
from market.streams.protocol.subscriptions import CONTROLS, Rejected
from market.streams.resume import CANDLES_KEPT_MS
from market.streams.wire import AbsorptionSignal, CandleUpdate, OrderFlowTick, PriceTick, StreamedCandle

# One of each message and more, as Structs or as what goes over the wire.
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
        "Prices, on /ws": {"action": "subscribe", "stream": "market", "symbols": ["EURUSD"], "api_key": KEY},
        "News as well, on /ws": {"action": "subscribe", "stream": "news", "categories": ["gold"]},
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


def _numbered(seq: int, unrecovered: list[str] | UnsetType = UNSET) -> subscriptions.Subscribed:
    at = {"EURUSD": seq}
    return subscriptions.subscribed(
        "market", ["EURUSD"], [], NOW_MS, 7, epoch=EPOCH, positions=at, unrecovered=unrecovered
    )


def _signals(unrecovered: list[str] | UnsetType = UNSET) -> subscriptions.Subscribed:
    return subscriptions.subscribed("signals", ["*"], [], NOW_MS, since="after:9041", unrecovered=unrecovered)


def _notice(code: subscriptions.NoticeCode, symbols: list[str] | UnsetType = UNSET) -> subscriptions.Notice:
    return subscriptions.Notice(code=code, symbols=symbols, time=NOW_MS)


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
        "On /ws, with seq": {"stream": "market"} | _plain | {"seq": 48_213},
    },
    OrderFlowTick: {"A buyer": OrderFlowTick("EURUSD", 0.0, 1.0, 1.0, -126.0, 1.08418, NOW_MS)},
    CandleUpdate: {
        "A minute was closed": _closed,
        "With seq": _closed | {"seq": 1_205},
        "It forms": _closed | {"closed": False, "time": 1_795_183_407_250},
    },
    AbsorptionSignal: {"Sellers met the bid": ABSORPTION},
    subscriptions.Subscribed: {
        "Some are unknown": subscriptions.subscribed("market", ["EURUSD"], [Rejected("NOPE")], NOW_MS, 7),
        "All of the order flow": subscriptions.subscribed("orderflow", ["*"], [], NOW_MS),
        "With seq": _numbered(48_213),
        "Candles with seq": subscriptions.subscribed(
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
        "News of two categories": subscriptions.subscribed(
            "news", ["*"], [], NOW_MS, categories=["gold", "macro"], since="after:9044"
        ),
    },
    subscriptions.Unsubscribed: {
        "One is left": subscriptions.Unsubscribed(symbols=["EURUSD"], id=8, time=NOW_MS)
    },
    subscriptions.Listed: {"One": subscriptions.Listed(symbols=["EURUSD"], id=9, time=NOW_MS)},
    subscriptions.Pong: {"Pong": subscriptions.Pong(id="alive?", time=NOW_MS)},
    subscriptions.Heartbeat: {"Heartbeat": subscriptions.Heartbeat(time=NOW_MS)},
    subscriptions.Notice: {
        "Restart": _notice("restarting"),
        "No engine is heard": _notice("stale", ["EURUSD", "XAUUSD"]),
        "It is heard again": _notice("live", ["EURUSD", "XAUUSD"]),
        "Real prices begin": _notice("new_series", ["EURUSD"]),
        "Not offered any more": _notice("deactivated", ["EURUSD"]),
        "Offered again": _notice("activated", ["EURUSD"]),
    },
    subscriptions.Gap: {
        "A new numbering began": subscriptions.Gap(
            symbols=["EURUSD"], epoch="f09e2b7711ac", positions={"EURUSD": 12}, time=NOW_MS
        )
    },
    subscriptions.Conflated: {"Three were left out": subscriptions.Conflated(symbol="EURUSD", dropped=3)},
    Error: {
        "invalid_message": invalid(
            "symbols must be a list of 1 to 200 instrument codes.", "symbols", max=200
        ).frame(NOW_MS),
        "stream_limit_exceeded": too_many_streams(2, 2).frame(NOW_MS),
        **{code: StreamRefused(code).frame(NOW_MS) for code in _others},
    },
}


INTRODUCTION = """Prices, order flow, candles, trade signals and news over WebSocket, all in one envelope.

Connect and send `subscribe` within 10 seconds. Data frames have no `type`, except absorption signals and
closures; all other frames have one. Send at most 10 messages a second (20 at once) of at most 16 KiB
each. The service sends a WebSocket ping every 10 s. Errors arrive as `error`; after a fatal one, the
socket closes with the code given here. An optional field that is `null` counts as absent. Numbers have no
exponent: 0.00003."""
SEQ = (
    "With the feature `seq`: one more than in the previous frame of this symbol; 0 in a snapshot if none has"
    " been sent since the numbering began."
)
CANDLE_SEQ = (
    "With the feature `seq`, on closed candles: one more than in the previous one of this symbol and"
    " timeframe; 0 if none has been sent."
)
SENT = "With the feature `lag`: when the frame was sent, in milliseconds since the epoch."
FEATURES: dict[Feature, str] = {
    "seq": "Numbers the frames of each symbol (of each symbol and timeframe on candles), so that you can"
    " detect gaps and resume. Not available on signals and news.",
    "snapshot": "Sends the last tick of each symbol (on candles, the last closed one of each timeframe) after"
    " the reply and before live data. Not available on signals and news.",
    "lag": "Adds the time of sending to each frame, so that you can tell our delay from the network's.",
    "heartbeat": "Sends `heartbeat` after 10 s without any other frame.",
    "latest": "On prices, if you read too slowly: keeps the newest tick of each symbol, with the volumes"
    " added up, and says how many were left out. It has no effect on the other streams.",
}
_HERE = f"Only in the demo, on prices and order flow, for `{TEST_SYMBOL}` when you name it"
FAULTS: dict[Chaos, str] = {
    "chaos:gap": f"{_HERE}: leaves out every frame whose `seq` is a multiple of {EVERY}."
    " Use `resume` on a new connection to get what was left out.",
    "chaos:duplicate": f"{_HERE}: sends one frame of {EVERY} twice.",
    "chaos:stale": f"{_HERE}: sends nothing in the last {(CYCLE_MS - STALE_AFTER_MS) // 1000} of every"
    f" {CYCLE_MS // 1000} seconds of the clock. Heartbeats continue.",
    "chaos:burst": f"{_HERE}: holds frames back and sends {FRAMES_AT_ONCE} at once,"
    f" or fewer if another client requests a fault for `{TEST_SYMBOL}`.",
}
LIMITS: dict[str, str] = {
    "Subscribe after connecting": "within 10 seconds",
    "Symbols in one message": f"{MAX_SYMBOLS}; subscriptions add up",
    "Size of a message": f"{MAX_BYTES // 1024} KiB",
    "Messages you send": f"{A_SECOND} a second, {BURST} at once",
    "Attempts without a valid key": "60 a minute from one address, including REST; after that, each error"
    " says how long to wait. Valid keys are never affected",
    "Invalid messages": f"the {MAX_INVALID}th within {INVALID_WITHIN_MS // 1000} seconds closes the socket",
    "Frames that wait for a slow reader": f"{MOST_FRAMES:,} or {MOST_BYTES // 1024**2} MiB,"
    f" or {STUCK_AFTER_S:.0f} seconds without progress",
    "What `resume` replays": f"{KEEP_MS // 1000} seconds, but at most {MAX_FRAMES:,} frames of each symbol;"
    f" for candles {CANDLES_KEPT_MS // 60_000} minutes, or {KEEP_MS // 1000} seconds if the service was"
    f" restarted meanwhile. A socket that resumes repeatedly is sent each frame again only once in"
    f" {KEEP_MS // 1000} seconds",
    "What `since` replays": "7 days of signals and of news",
    "Silence": "the service pings every 10 seconds, and disconnects within 30 seconds if there is no answer",
}

Json = dict[str, Any]
Types = Sequence[type[msgspec.Struct]]
Scheme = Literal["ws", "wss"]
NUMBER: Json = {"type": "integer", "minimum": 0, "description": SEQ}
CANDLE_NUMBER: Json = {"type": "integer", "minimum": 0, "description": CANDLE_SEQ}
_NAMES: Json = {"type": "string", "enum": [kind.name for kind in KINDS]}
ADDRESSED: Json = {**_NAMES, "description": "Required on `/ws`: the stream that this message is for."}
NAMED: Json = {**_NAMES, "description": "On `/ws`: the stream of this frame."}
MOMENT: Json = {"type": "integer", "minimum": 0, "description": SENT}
ABOUT_ONE: Types = (
    Subscribe,
    Unsubscribe,
    List,
    subscriptions.Unsubscribed,
    subscriptions.Listed,
    subscriptions.Notice,
    subscriptions.Gap,
    subscriptions.Conflated,
)
"""What names its stream on `/ws`, besides data and what has a field for it on all paths."""
ANSWERS: dict[type[msgspec.Struct], type[msgspec.Struct]] = {
    Subscribe: subscriptions.Subscribed,
    Unsubscribe: subscriptions.Unsubscribed,
    List: subscriptions.Listed,
    Ping: subscriptions.Pong,
}


class Channel(msgspec.Struct, frozen=True):
    """The description of one stream, or of the path that carries all of them."""

    kind: StreamKind | None
    title: str
    about: str
    data: Types
    examples: Examples = {}

    @property
    def name(self) -> str:
        return TOGETHER if self.kind is None else self.kind.name

    @property
    def path(self) -> str:
        return ONE_SOCKET if self.kind is None else self.kind.path

    @property
    def announcements(self) -> list[type[msgspec.Struct]]:
        """What comes unasked besides the data."""
        found: list[type[msgspec.Struct]] = [subscriptions.Heartbeat, subscriptions.Notice, messages.Error]
        if self.kind is None or self.kind.is_numbered:
            found.append(subscriptions.Gap)
        if self.kind is None or self.kind.can_conflate:
            found.append(subscriptions.Conflated)
        return found

    @property
    def extras(self) -> Json:
        """What the data of one stream carry for those who asked for it."""
        if self.kind is None or not self.kind.is_numbered:
            return {"sent": MOMENT}
        return {"seq": CANDLE_NUMBER if self.kind.has_timeframes else NUMBER, "sent": MOMENT}

    @property
    def messages(self) -> list[type[msgspec.Struct]]:
        return [*ANSWERS, *ANSWERS.values(), *self.data, *self.announcements]


PRICES = Channel(MARKET, "Prices", "Every tick of the instruments that you name in `symbols`.", (PriceTick,))
FLOW = Channel(
    ORDERFLOW,
    "Order flow",
    "Buying and selling pressure, tick by tick, and where it was absorbed. Without `symbols`, you receive all"
    " instruments.",
    (OrderFlowTick, AbsorptionSignal),
)
BARS = Channel(
    CANDLES,
    "Candles",
    "Every candle of the subscribed instruments when it closes, and its state before that if you request"
    ' `"events": ["forming"]`. Name the instruments in `symbols`, and choose `timeframes` from `1m`, `5m`,'
    " `15m`, `1h`, `4h` and `1d`. Imported candles are available over REST only.",
    (CandleUpdate,),
)
CHANNELS = (PRICES, FLOW, BARS)


def together(channels: Sequence[Channel]) -> Channel:
    return Channel(
        None,
        "All on one socket",
        "All streams on one socket, which counts as one. Each message except `ping` names its `stream`, and"
        " so does each frame that is about one. Symbols, features, `epoch`, `seq`, `resume` and `since` are"
        " those of that stream, as on its own path. The key, the limits of what you send, heartbeats and slow"
        " reading concern the whole socket. With `takeover`, your oldest socket on this path is replaced, or"
        " your oldest one if there is none.",
        tuple(data for channel in channels for data in channel.data),
    )


def servers(host: str, scheme: Scheme = "wss") -> Json:
    return {"tickwire": {"host": host, "protocol": scheme}}


LARGEST_INT32 = 2**31 - 1


def settle(schema: Any) -> None:
    """Puts timeframes in order, which the library sorts by letters, opens the list of codes, and says which
    numbers are long."""
    for part in schema.values() if isinstance(schema, dict) else schema:
        if isinstance(part, dict | list):
            settle(part)
    if isinstance(schema, dict) and set(schema.get("enum", ())) == {*TIMEFRAMES}:
        schema["enum"] = [*TIMEFRAMES]
    if isinstance(schema, dict) and isinstance(schema.get("code"), dict) and "enum" in schema["code"]:
        code = schema["code"]
        known = ", ".join(code.pop("enum"))
        code |= {
            "type": "string",
            "description": f"{code['description']} Known values, to which more may be added: {known}.",
        }
    if (
        isinstance(schema, dict)
        and schema.get("type") == "integer"
        and schema.get("maximum", LARGEST_INT32 + 1) > LARGEST_INT32
    ):
        schema["format"] = "int64"


def document(channels: Sequence[Channel], host: str, scheme: Scheme = "wss") -> Json:
    channels = [*channels, together(channels)]
    types = list(dict.fromkeys(kind for channel in channels for kind in channel.messages))
    _, schemas = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    for schema in schemas.values():
        if "description" in schema:
            schema["description"] = in_one_line(schema["description"])
    for named in ABOUT_ONE:
        schemas[named.__name__]["properties"]["stream"] = NAMED if named in CONTROLS else ADDRESSED
    for channel in channels:
        for data in channel.data:
            schemas[data.__name__]["properties"] |= channel.extras
            schemas[data.__name__]["properties"]["stream"] = NAMED
    settle(schemas)
    examples = CLIENT_EXAMPLES | SERVER_EXAMPLES
    for channel in channels:
        examples |= channel.examples
    return {
        "asyncapi": "3.0.0",
        "info": {"title": "Tickwire streams", "version": "1", "description": INTRODUCTION},
        "servers": servers(host, scheme),
        "defaultContentType": "application/json",
        "channels": {channel.name: _channel(channel) for channel in channels},
        "operations": {name: operation for channel in channels for name, operation in _operations(channel)},
        "components": {
            "messages": {kind.__name__: _message(kind, examples[kind]) for kind in types},
            "schemas": schemas,
        },
        "x-features": FEATURES | FAULTS,
        "x-limits": LIMITS,
        "x-refusals": _refusals(),
        "x-close-codes": _closes(),
    }


def _channel(channel: Channel) -> Json:
    key = {
        "type": "string",
        "description": "Your API key, unless you send it as `api_key` in the first message.",
    }
    headers = {"type": "object", "properties": {"X-API-Key": key}}
    return {
        "address": channel.path,
        "title": channel.title,
        "description": channel.about,
        "messages": {
            kind.__name__: {"$ref": f"#/components/messages/{kind.__name__}"} for kind in channel.messages
        },
        "bindings": {"ws": {"method": "GET", "headers": headers, "bindingVersion": "0.1.0"}},
    }


def _operations(channel: Channel) -> Iterable[tuple[str, Json]]:
    """As AsyncAPI has them: what this service receives and sends."""
    name = channel.name
    for asked, answer in ANSWERS.items():
        reply = _exchange(channel, (answer, messages.Error))
        yield (
            f"{name}{asked.__name__}",
            {"action": "receive", **_exchange(channel, (asked,)), "reply": reply},
        )
    yield f"{name}Data", {"action": "send", **_exchange(channel, channel.data)}
    yield f"{name}Announcements", {"action": "send", **_exchange(channel, channel.announcements)}


def _exchange(channel: Channel, types: Types) -> Json:
    here = f"#/channels/{channel.name}"
    return {
        "channel": {"$ref": here},
        "messages": [{"$ref": f"{here}/messages/{kind.__name__}"} for kind in types],
    }


def in_one_line(docstring: str) -> str:
    return " ".join(docstring.split())


def _message(kind: type[msgspec.Struct], examples: Json) -> Json:
    config = kind.__struct_config__
    about = {"summary": in_one_line(kind.__doc__)} if kind.__doc__ else {}
    return {
        "name": config.tag if isinstance(config.tag, str) else kind.__name__,
        "title": kind.__name__,
        **about,
        "payload": {"$ref": f"#/components/schemas/{kind.__name__}"},
        "examples": [
            {"name": title, "payload": msgspec.to_builtins(payload)} for title, payload in examples.items()
        ],
    }


def _refusals() -> list[Json]:
    return [
        {
            "code": code,
            "status": refusal.status,
            "close": refusal.close,
            "retry": refusal.can_retry,
            "message": refusal.message,
        }
        for code, refusal in REFUSALS.items()
    ]


def _closes() -> list[Json]:
    return [
        {"close": code, "retry": close.can_retry, "reason": close.reason}
        for code, close in sorted(CLOSES.items())
    ]
