"""The streams, and what a client may say on them. Fields that nobody knows are ignored."""

from typing import Annotated, Literal, get_args

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
    """What is told besides, on request."""
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

Milliseconds = Annotated[int, Meta(description="Milliseconds since the epoch, UTC.", ge=0)]
