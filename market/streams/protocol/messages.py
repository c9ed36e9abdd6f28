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
    """Where a client was when it lost its socket."""

    epoch: str
    positions: dict[str, Seq]


class ClientMessage(msgspec.Struct, kw_only=True, frozen=True, tag_field="action"):
    id: Annotated[Id | UnsetType, Meta(description="Echoed in what answers the message.")] = UNSET
    api_key: Annotated[
        str | UnsetType,
        Meta(description="Needed once, unless X-API-Key was sent with the handshake. This one wins."),
    ] = UNSET


class Subscribe(ClientMessage, tag="subscribe", frozen=True):
    """Adds to what is subscribed; repeating it is harmless."""

    symbols: Annotated[
        Symbols | UnsetType,
        Meta(description='On the order flow, signals and news, absent or ["*"] means all.'),
    ] = UNSET
    categories: Annotated[
        Annotated[frozenset[Category], Meta(min_length=1)] | UnsetType,
        Meta(description="On /ws/news: only news of these. They add up; absent means all."),
    ] = UNSET
    timeframes: Annotated[
        Annotated[frozenset[Timeframe], Meta(min_length=1)] | UnsetType,
        Meta(
            description="On /ws/candles, for all of its symbols. They add up; absent: those that are"
            ' subscribed, or at first ["1m"].'
        ),
    ] = UNSET
    features: Annotated[
        frozenset[RequestedFeature],
        Meta(
            description="seq numbers frames of prices, order flow and candles, snapshot sends the last one"
            " first, lag adds when a frame was sent, heartbeat breaks silences of 10 s, latest skips to the"
            " newest price when you are slow, chaos lets the demo's TEST misbehave."
        ),
    ] = frozenset()
    events: Annotated[
        frozenset[Event],
        Meta(
            description="More that is told: signal.closed on /ws/signals; forming on /ws/candles, at most"
            " once a second for each symbol and timeframe."
        ),
    ] = frozenset()
    resume: Annotated[
        Resume | UnsetType,
        Meta(
            description="Replays what was missed on /ws/market, /ws/orderflow or /ws/candles. From a position"
            " of 0 only candles are replayed: of the others nobody can tell how much was missed. Positions of"
            " what is not subscribed are unrecovered."
        ),
    ] = UNSET
    since: Annotated[
        Annotated[str, Meta(max_length=MAX_ID_LENGTH)] | UnsetType,
        Meta(
            description="The last that was received, as a text: replays what came after it on /ws/signals or"
            ' /ws/news. The id of a signal, "closed:" and the id if that was a closure, the id of an item of'
            " news, or the since of a reply."
        ),
    ] = UNSET
    takeover: Annotated[
        bool, Meta(description="At the stream limit, end your oldest stream instead of being refused.")
    ] = False


class Unsubscribe(ClientMessage, tag="unsubscribe", frozen=True):
    """Of whole symbols: who wants fewer timeframes or categories leaves all and subscribes anew."""

    symbols: Annotated[Symbols | UnsetType, Meta(description="Absent: all.")] = UNSET


class List(ClientMessage, tag="list", frozen=True):
    """Asks what is subscribed."""


class Ping(ClientMessage, tag="ping", frozen=True):
    """Asks for a pong."""


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
