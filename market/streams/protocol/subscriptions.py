"""What one socket has subscribed to on its stream, and the replies and notices about it. Each has a
`type`."""

from collections.abc import Callable, Collection, Iterable
from functools import cache
from sys import intern
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace

from core.struct_schemas import Symbol
from market.prices.candles import key_of_candles
from market.streams.protocol.messages import (
    ALL,
    CATEGORIES,
    TIMEFRAMES,
    AnyId,
    Category,
    Control,
    EchoedId,
    Error,
    Event,
    Milliseconds,
    RequestedFeature,
    StreamName,
    Subscribe,
    Timeframe,
    Unsubscribe,
    invalid,
)


class Rejected(msgspec.Struct, frozen=True):
    """A symbol as the client wrote it."""

    symbol: Annotated[str, Meta(description="The symbol as you wrote it.")]
    code: Annotated[Literal["symbol_not_found"], Meta(description="Why it was rejected.")] = (
        "symbol_not_found"
    )


class SubscriptionChange(msgspec.Struct, frozen=True):
    """Sorted, in upper case; "*" stands for all."""

    joined: list[str] = []
    left: list[str] = []
    rejected: list[Rejected] = []
    joined_keys: list[str] | None = None
    """Where frames are numbered by symbol and timeframe, those that joined: EURUSD/1m."""

    @property
    def begun(self) -> list[str]:
        """By what frames are numbered, all whose frames come from now on."""
        return self.joined if self.joined_keys is None else self.joined_keys

    def brings(self, symbol: str) -> bool:
        """Whether its frames come from now on, but did not before."""
        if self.joined_keys is not None:
            return symbol in self.joined_keys
        return symbol in self.joined or (ALL in self.joined and symbol not in self.left)


def upper(symbol: str) -> str:
    # Only ASCII: "ı" and "ſ" become I and S in upper case.
    return symbol.upper() if symbol.isascii() else symbol


def upper_key(key: str) -> str:
    """Of what frames are numbered by: EURUSD, or EURUSD/1m."""
    symbol, slash, timeframe = key.partition("/")
    return f"{upper(symbol)}{slash}{timeframe}"


T = TypeVar("T")


@cache
def united(some: frozenset[T], more: frozenset[T]) -> frozenset[T]:
    """The same object for all who asked for the same: of features and events there are few."""
    return some | more


class Subscriptions:
    """They add up, and so do features and events: a later message takes nothing away."""

    __slots__ = ("_symbols", "categories", "events", "features", "timeframes")

    def __init__(self) -> None:
        self._symbols: tuple[str, ...] = ()
        """Sorted. Thousands of sockets have some, and a set takes five times as much memory."""
        self.timeframes: tuple[Timeframe, ...] = ()
        """Of all symbols, the finest first, on the stream that has them."""
        self.categories: frozenset[Category] = frozenset()
        """Those of all symbols, on the stream that has them."""
        self.features: frozenset[RequestedFeature] = frozenset()
        self.events: frozenset[Event] = frozenset()

    @property
    def has_all(self) -> bool:
        return ALL in self._symbols

    @property
    def symbols(self) -> list[str]:
        """As in replies: ["*"] for all."""
        return list(self._symbols)

    @property
    def keys(self) -> list[str]:
        """By what frames are numbered: symbols, or symbols with timeframes."""
        if not self.timeframes:
            return self.symbols
        return [
            key_of_candles(symbol, timeframe) for symbol in self._symbols for timeframe in self.timeframes
        ]

    @property
    def shown_categories(self) -> list[Category] | UnsetType:
        """As in replies."""
        if not self.categories:
            return UNSET
        return [name for name in CATEGORIES if name in self.categories and self._symbols]

    def covers(self, symbol: str) -> bool:
        return symbol in self._symbols or self.has_all

    def subscribe(self, message: Subscribe, is_known: Callable[[str], bool]) -> SubscriptionChange:
        self.features = united(self.features, message.features)
        self.events = united(self.events, message.events)
        if message.categories is not UNSET:
            # A client that has left all symbols starts from scratch.
            had: frozenset[Category] = self.categories if self._symbols else frozenset()
            self.categories = united(had, message.categories)
        if message.timeframes is UNSET:
            return self._subscribe(message, is_known)
        known = set(self.keys) if self.timeframes else set()
        self.timeframes = tuple(
            name for name in TIMEFRAMES if name in self.timeframes or name in message.timeframes
        )
        change = self._subscribe(message, is_known)
        return replace(change, joined_keys=[key for key in self.keys if key not in known])

    def _subscribe(self, message: Subscribe, is_known: Callable[[str], bool]) -> SubscriptionChange:
        if message.symbols is UNSET:
            return self._join({ALL}, [])
        wanted, before = dict.fromkeys(message.symbols), frozenset(self._symbols)
        # Subscriptions are kept, so that a symbol is never in both lists of a reply.
        known = {
            intern(upper(symbol))
            for symbol in wanted
            if symbol == ALL or upper(symbol) in before or is_known(upper(symbol))
        }
        rejected = [Rejected(symbol) for symbol in wanted if upper(symbol) not in known]
        return self._join(known, rejected)

    def drop(self, gone: Collection[str]) -> None:
        self._symbols = tuple(symbol for symbol in self._symbols if symbol not in gone)

    def unsubscribe(self, message: Unsubscribe) -> SubscriptionChange:
        if message.symbols is UNSET or ALL in message.symbols:
            return self._leave(self._symbols)
        if self.has_all:
            raise invalid(
                "You are subscribed to all symbols: unsubscribe from all, then name some.", "symbols"
            )
        return self._leave(set(self._symbols).intersection(map(upper, message.symbols)))

    def _join(self, wanted: set[str], rejected: list[Rejected]) -> SubscriptionChange:
        if self.has_all:
            return SubscriptionChange(rejected=rejected)
        if ALL in wanted:
            left, self._symbols = self.symbols, (ALL,)
            return SubscriptionChange([ALL], left, rejected)
        joined = sorted(wanted.difference(self._symbols))
        self._symbols = tuple(sorted(wanted.union(self._symbols)))
        return SubscriptionChange(joined, [], rejected)

    def _leave(self, unwanted: Iterable[str]) -> SubscriptionChange:
        left = sorted(unwanted)
        self.drop(frozenset(left))
        if not self._symbols:
            # A first subscription has to name its timeframes.
            self.timeframes = ()
        return SubscriptionChange(left=left)


Positions = Annotated[
    dict[str, int],
    Meta(
        description="With `seq`, except on signals and news: the number after which each symbol's frames"
        " continue; send it in `resume`. On candles, by symbol and timeframe, such as `EURUSD/1m`."
    ),
]

AllSymbols = Annotated[list[str], Meta(description='All subscribed symbols, or `["*"]`.')]

Categories = Annotated[
    list[Category] | UnsetType,
    Meta(description="On news: the subscribed categories, which apply to all symbols."),
]


Timeframes = Annotated[
    list[Timeframe] | UnsetType, Meta(description="On candles: the subscribed timeframes.")
]


class Subscribed(Control, tag="subscribed", kw_only=True):
    """The reply to `subscribe`, which comes before any data."""

    stream: Annotated[StreamName, Meta(description="The stream of this socket.")]
    symbols: AllSymbols
    timeframes: Timeframes = UNSET
    categories: Categories = UNSET
    rejected: Annotated[list[Rejected], Meta(description="The symbols of the message that are unknown.")]
    epoch: Annotated[
        str | UnsetType, Meta(description="With `seq`, except on signals and news: identifies the numbering.")
    ] = UNSET
    positions: Positions | UnsetType = UNSET
    since: Annotated[
        str | UnsetType,
        Meta(
            description="On signals and news: the place after which the stream continues. Send it as `since`"
            " if you lose the connection before the first frame."
        ),
    ] = UNSET
    recovered: Annotated[
        bool | UnsetType,
        Meta(description="After `resume` or `since`: whether everything that you missed follows."),
    ] = UNSET
    unrecovered: Annotated[
        list[str] | UnsetType,
        Meta(
            description="Symbols that continue from their last frame instead, or from now on signals and"
            " news. On candles, named as in `positions`."
        ),
    ] = UNSET
    id: EchoedId = UNSET
    time: Milliseconds


class Unsubscribed(Control, tag="unsubscribed", kw_only=True):
    symbols: Annotated[list[str], Meta(description="The symbols that are still subscribed.")]
    timeframes: Timeframes = UNSET
    categories: Categories = UNSET
    id: EchoedId = UNSET
    time: Milliseconds


class Listed(Control, tag="subscriptions", kw_only=True):
    symbols: AllSymbols
    timeframes: Timeframes = UNSET
    categories: Categories = UNSET
    id: EchoedId = UNSET
    time: Milliseconds


class Pong(Control, tag="pong", kw_only=True):
    id: EchoedId = UNSET
    time: Milliseconds


class Heartbeat(Control, tag="heartbeat", kw_only=True):
    """Sent after 10 s without another frame, if you requested the feature."""

    time: Milliseconds


NoticeCode = Literal["restarting", "stale", "live", "deactivated", "activated", "new_series"]


class Notice(Control, tag="notice", kw_only=True):
    """`restarting`: this server is about to close the socket with 1012. `stale`: it has lost the engine, so
    no frames of these symbols arrive until `live`; or it was frozen for a while, and the frames until `live`
    are old. `deactivated`: these symbols are no longer offered, so nothing more of them arrives until
    `activated`, except that their active signals close and news about them may arrive. You stay subscribed.
    What their numbers counted in between is sent only to those who resume then. `new_series`, except on
    signals and news: real prices replace simulated ones, or the reverse; earlier candles and order flow
    belong to the series that ended."""

    code: Annotated[NoticeCode, Meta(description="What has happened or is about to happen.")]
    symbols: Annotated[
        list[str] | UnsetType, Meta(description='Absent with `restarting`; `["*"]` if you subscribed to all.')
    ] = UNSET
    time: Milliseconds


class Gap(Control, tag="gap", kw_only=True):
    """The service lost its place: frames of these symbols may be missing, and a new numbering begins."""

    symbols: Annotated[list[str], Meta(description="The symbols of which frames may be missing.")]
    epoch: Annotated[str, Meta(description="Identifies the new numbering.")]
    positions: Positions
    time: Milliseconds


class Conflated(Control, tag="conflated", kw_only=True):
    """With the feature `latest`: how many ticks were left out. The next tick includes their volumes."""

    symbol: Symbol
    dropped: Annotated[int, Meta(description="How many ticks were left out.")]


CONTROLS = (Subscribed, Unsubscribed, Listed, Pong, Heartbeat, Notice, Gap, Conflated, Error)


def subscribed(
    stream: StreamName,
    symbols: list[str],
    rejected: list[Rejected],
    now_ms: int,
    id: AnyId | UnsetType = UNSET,  # noqa: A002 - the name on the wire
    *,
    timeframes: list[Timeframe] | UnsetType = UNSET,
    categories: Categories = UNSET,
    epoch: str | UnsetType = UNSET,
    positions: dict[str, int] | UnsetType = UNSET,
    since: str | UnsetType = UNSET,
    unrecovered: list[str] | UnsetType = UNSET,
) -> Subscribed:
    """`unrecovered` is empty if all was recovered, and unset if nothing was to be."""
    return Subscribed(
        stream=stream,
        symbols=symbols,
        timeframes=timeframes,
        categories=categories,
        rejected=rejected,
        epoch=epoch,
        positions=positions,
        since=since,
        recovered=UNSET if unrecovered is UNSET else not unrecovered,
        unrecovered=unrecovered or UNSET,
        id=id,
        time=now_ms,
    )
