"""The streams, what a client may send on them, and how that is refused. Unknown fields are ignored."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import UNSET, Meta, UnsetType

MAX_SYMBOLS, MAX_ID_LENGTH = 200, 64
ALL = "*"
Id = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | Annotated[str, Meta(max_length=MAX_ID_LENGTH)]
Symbols = Annotated[list[str], Meta(min_length=1, max_length=MAX_SYMBOLS)]
Seq = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Feature = Literal["seq", "snapshot", "lag", "heartbeat", "latest"]
Chaos = Literal["chaos:gap", "chaos:duplicate", "chaos:stale", "chaos:burst"]
"""Where the demo's test instrument is offered."""
RequestedFeature = Literal[Feature, Chaos]
Event = Literal["signal.closed", "forming"]
Timeframe = Literal["1m", "5m", "15m", "1h", "4h", "1d"]
Category = Literal["forex", "gold", "crypto", "macro"]
FEATURES: tuple[Feature, ...] = get_args(Feature)
CHAOS: tuple[Chaos, ...] = get_args(Chaos)
EVENTS: tuple[Event, ...] = get_args(Event)
TIMEFRAMES: tuple[Timeframe, ...] = get_args(Timeframe)
DEFAULT_TIMEFRAME: Timeframe = "1m"
CATEGORIES: tuple[Category, ...] = get_args(Category)


class Resume(msgspec.Struct, frozen=True):
    """Where a client had got to when it lost its connection."""

    epoch: Annotated[str, Meta(description="The `epoch` of the reply to `subscribe`, or of a later `gap`.")]
    positions: Annotated[
        dict[str, Seq],
        Meta(
            description="The last `seq` that you received of each symbol, or on candles of each symbol and"
            " timeframe, such as `EURUSD/1m`."
        ),
    ]


class ClientMessage(msgspec.Struct, kw_only=True, frozen=True, tag_field="action"):
    id: Annotated[Id | UnsetType, Meta(description="Repeated in the reply to this message.")] = UNSET
    api_key: Annotated[
        str | UnsetType,
        Meta(description="Required once, unless the handshake had `X-API-Key`. This one takes precedence."),
    ] = UNSET


class Subscribe(ClientMessage, tag="subscribe", frozen=True):
    """Adds to the existing subscriptions; repeating it does no harm."""

    symbols: Annotated[
        Symbols | UnsetType,
        Meta(
            description="Required on `/ws/market` and `/ws/candles`. On order flow, signals and news, all"
            ' symbols if absent or `["*"]`.'
        ),
    ] = UNSET
    categories: Annotated[
        Annotated[frozenset[Category], Meta(min_length=1)] | UnsetType,
        Meta(description="On `/ws/news`: only items of these categories, which add up. All if absent."),
    ] = UNSET
    timeframes: Annotated[
        Annotated[frozenset[Timeframe], Meta(min_length=1)] | UnsetType,
        Meta(
            description="On `/ws/candles`: the timeframes of all its symbols, which add up. If absent, those"
            ' that are already subscribed, or `["1m"]` at first.'
        ),
    ] = UNSET
    features: Annotated[
        frozenset[RequestedFeature],
        Meta(
            description="`seq` numbers the frames of prices, order flow and candles; `snapshot` sends the"
            " last one first; `lag` adds the time at which a frame was sent; `heartbeat` sends a frame after"
            " 10 s of silence; `latest` skips to the newest price if you read too slowly; those that begin"
            " with `chaos:` make the demo's instrument `TEST` misbehave."
        ),
    ] = frozenset()
    events: Annotated[
        frozenset[Event],
        Meta(
            description="Additional frames: `signal.closed` on `/ws/signals`; `forming` on `/ws/candles`, at"
            " most once a second for each symbol and timeframe."
        ),
    ] = frozenset()
    resume: Annotated[
        Resume | UnsetType,
        Meta(
            description="Replays what you missed on `/ws/market`, `/ws/orderflow` or `/ws/candles`. From"
            " position 0 only candles are replayed, because it is unknown how many of the other frames were"
            " missed. Positions of symbols that are not subscribed are listed in `unrecovered`."
        ),
    ] = UNSET
    since: Annotated[
        Annotated[str, Meta(max_length=MAX_ID_LENGTH)] | UnsetType,
        Meta(
            description="The last frame that you received, as a string: replays what followed it on"
            " `/ws/signals` or `/ws/news`. It is the `id` of a signal, `closed:` and the `id` of a signal for"
            " a closure, the `id` of a news item, or the `since` of a reply."
        ),
    ] = UNSET
    takeover: Annotated[
        bool,
        Meta(description="At the stream limit, closes your oldest stream instead of rejecting this one."),
    ] = False


class Unsubscribe(ClientMessage, tag="unsubscribe", frozen=True):
    """Removes whole symbols. For fewer timeframes or categories, unsubscribe from all and subscribe again."""

    symbols: Annotated[Symbols | UnsetType, Meta(description="All symbols if absent.")] = UNSET


class List(ClientMessage, tag="list", frozen=True):
    """Requests the list of subscriptions."""


class Ping(ClientMessage, tag="ping", frozen=True):
    """Requests a `pong`."""


AnyMessage = Subscribe | Unsubscribe | List | Ping
ACTIONS = ("subscribe", "unsubscribe", "list", "ping")

StreamName = Literal["market", "orderflow", "candles", "signals", "news"]


class StreamKind(msgspec.Struct, frozen=True):
    name: StreamName
    takes_all: bool
    """Whether symbols may be absent or "*"."""
    is_numbered: bool
    """Whether it is resumed by numbers; signals and news are, by their ids."""
    can_conflate: bool = False
    """Whether a newer message can stand for older ones."""
    events: tuple[Event, ...] = ()
    """What is sent besides, on request."""
    has_timeframes: bool = False
    """Whether it is of symbols in timeframes, whose frames are numbered by both: EURUSD/1m."""
    has_categories: bool = False

    @property
    def path(self) -> str:
        return f"/ws/{self.name}"


MARKET = StreamKind("market", takes_all=False, is_numbered=True, can_conflate=True)
ORDERFLOW = StreamKind("orderflow", takes_all=True, is_numbered=True)
CANDLES = StreamKind("candles", takes_all=False, is_numbered=True, events=("forming",), has_timeframes=True)
SIGNALS = StreamKind("signals", takes_all=True, is_numbered=False, events=("signal.closed",))
NEWS = StreamKind("news", takes_all=True, is_numbered=False, has_categories=True)
KINDS = (MARKET, ORDERFLOW, CANDLES, SIGNALS, NEWS)
"""All that are offered, as /llms.txt lists them; tests ask of each what has to hold for all."""
ONE_SOCKET, TOGETHER = "/ws", "all"
"""The path that carries all of them together, and its name where each of them has one."""

Milliseconds = Annotated[int, Meta(description="Milliseconds since the epoch, UTC.", ge=0)]


# What a stream refuses, how it says so, and with which code a socket closes.
Code = Literal[
    "invalid_message",
    "invalid_api_key",
    "https_required",
    "subscribe_timeout",
    "taken_over",
    "stream_closed",
    "stream_limit_exceeded",
    "too_many_messages",
    "slow_consumer",
    "internal_error",
]
AnyId = int | str


class StreamRefusal(msgspec.Struct, frozen=True):
    status: int
    """The status that REST would send."""
    close: int | None
    """None: the socket stays open."""
    can_retry: bool
    """Whether connecting again as before may succeed."""
    message: str


REFUSALS: dict[Code, StreamRefusal] = {
    "invalid_message": StreamRefusal(400, None, False, "The message cannot be understood."),
    "invalid_api_key": StreamRefusal(
        401,
        4401,
        False,
        "The API key is missing or not valid. It is sent as api_key in the message, or in the X-API-Key"
        " header of the handshake.",
    ),
    "https_required": StreamRefusal(
        403,
        4403,
        False,
        "This key was sent without TLS and may have been read. Use wss://, and issue a new key.",
    ),
    "subscribe_timeout": StreamRefusal(
        408, 4408, True, "No valid subscribe came within 10 seconds. Connect again and send it first."
    ),
    "taken_over": StreamRefusal(
        409, 4409, False, "Another connection of your account has taken this stream over."
    ),
    # Final like a takeover, or the client would reconnect and have to be closed again.
    "stream_closed": StreamRefusal(
        410, 4410, False, "This stream was closed in the settings panel of your account."
    ),
    "stream_limit_exceeded": StreamRefusal(
        429,
        4429,
        True,
        "Your tier allows no more open streams. Close one, or set takeover when you subscribe.",
    ),
    "too_many_messages": StreamRefusal(
        429, 4413, True, "Send at most 10 messages a second, 20 at once. One message can name 200 symbols."
    ),
    "slow_consumer": StreamRefusal(
        408,
        4430,
        True,
        "You read more slowly than frames arrive. Subscribe to less, or request the feature latest.",
    ),
    "internal_error": StreamRefusal(500, 4500, True, "Something failed on our side. Connect again."),
}
NOT_UTF8, TOO_BIG, RESTARTING, TOO_MANY_INVALID = 1007, 1009, 1012, 4400


class Close(msgspec.Struct, frozen=True):
    can_retry: bool
    reason: str


CLOSES: dict[int, Close] = {
    NOT_UTF8: Close(False, "A text is not valid UTF-8. No error frame precedes it."),
    TOO_BIG: Close(False, "A message is larger than 16 KiB. No error frame precedes it."),
    RESTARTING: Close(
        True, "This server is restarting, or has far more streams than another, as a notice has announced."
    ),
    TOO_MANY_INVALID: Close(False, "The tenth invalid message within 60 seconds."),
} | {
    refusal.close: Close(refusal.can_retry, refusal.message)
    for refusal in REFUSALS.values()
    if refusal.close is not None
}


class ErrorDetails(msgspec.Struct, kw_only=True, omit_defaults=True):
    code: Annotated[Code, Meta(description="Stable, and meant for programs.")]
    message: Annotated[str, Meta(description="Meant for people; it may change.")]
    status: Annotated[int, Meta(description="The HTTP status that REST would send.")]
    field: Annotated[str | UnsetType, Meta(description="The part of the message that is wrong.")] = UNSET
    allowed: Annotated[list[str] | UnsetType, Meta(description="The values that are allowed.")] = UNSET
    max: Annotated[
        int | UnsetType, Meta(description="The largest number, or the longest list, that is allowed.")
    ] = UNSET
    limit: Annotated[int | UnsetType, Meta(description="Streams that your tier allows at once.")] = UNSET
    open: Annotated[int | UnsetType, Meta(description="Streams of your account that are open.")] = UNSET
    retry_after: Annotated[int | UnsetType, Meta(description="Seconds to wait before trying again.")] = UNSET


class StreamRefused(Exception):
    """A message is refused, or with a `close` code the socket ends."""

    def __init__(self, code: Code, message: str = "", **details: Any) -> None:
        refusal = REFUSALS[code]
        self.code, self.close, self.can_retry = code, refusal.close, refusal.can_retry
        self.details = ErrorDetails(
            code=code, message=message or refusal.message, status=refusal.status, **details
        )
        self.id: AnyId | UnsetType = UNSET
        """Of the message that is refused."""
        self.stream: StreamName | UnsetType = UNSET
        """On `/ws`, the stream of that message."""
        super().__init__(self.details.message)

    def frame(self, now_ms: int) -> Error:
        is_fatal = self.close is not None
        return Error(
            stream=UNSET if is_fatal else self.stream,
            error=self.details,
            fatal=is_fatal,
            retry=self.can_retry,
            id=self.id,
            time=now_ms,
        )


def invalid(message: str, field: str | UnsetType = UNSET, **details: Any) -> StreamRefused:
    return StreamRefused("invalid_message", message, field=field, **details)


# By then the slots of a process that was killed are free.
RETRY_AFTER_S = 5


FOR_PAGES = "The pages of this site have as many streams open as they may have. Close another tab."


def too_many_streams(limit: int, number: int, *, is_page: bool = False) -> StreamRefused:
    message = FOR_PAGES if is_page else ""
    return StreamRefused(
        "stream_limit_exceeded", message, limit=limit, open=number, retry_after=RETRY_AFTER_S
    )


EchoedId = Annotated[
    AnyId | UnsetType, Meta(description="The `id` of the message that this answers, if it had one.")
]


class Control(msgspec.Struct, omit_defaults=True):
    pass


class Error(Control, tag="error", kw_only=True):
    """An error. If it is fatal, the socket closes."""

    stream: Annotated[
        StreamName | UnsetType,
        Meta(description="On `/ws`: the stream that the error is about, if it is not fatal."),
    ] = UNSET
    error: Annotated[ErrorDetails, Meta(description="What is wrong.")]
    fatal: Annotated[bool, Meta(description="Whether the socket closes.")]
    retry: Annotated[bool, Meta(description="Whether reconnecting without a change may succeed.")]
    id: EchoedId = UNSET
    time: Milliseconds
