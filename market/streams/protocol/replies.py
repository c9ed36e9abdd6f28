"""What a stream says besides its data: replies and notices. Each has a `type`."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from core.struct_schemas import Symbol

from .messages import AnyId, Category, Control, EchoedId, Error, Milliseconds, StreamName, Timeframe
from .subscriptions import Rejected

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
    """`unrecovered` is empty where all was recovered, and unset where nothing was to be."""
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
