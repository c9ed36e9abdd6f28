"""What a stream says besides its data: replies and notices. Each has a `type`."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from .messages import Category, Milliseconds, StreamName, Timeframe
from .refusals import Control, EchoedId, Error, Id
from .subscriptions import Rejected

Positions = Annotated[
    dict[str, int],
    Meta(
        description="With seq, not on signals and news: the number after which each symbol's frames go on;"
        " send it to resume. On candles it is of symbol and timeframe: EURUSD/1m."
    ),
]

Categories = Annotated[
    list[Category] | UnsetType, Meta(description="On news: those that are subscribed, of all its symbols.")
]


Timeframes = Annotated[list[Timeframe] | UnsetType, Meta(description="On candles: those of all its symbols.")]


class Subscribed(Control, tag="subscribed", kw_only=True):
    """The answer to subscribe, before any data."""

    stream: StreamName
    symbols: Annotated[list[str], Meta(description='All that are subscribed now, or ["*"].')]
    timeframes: Timeframes = UNSET
    categories: Categories = UNSET
    rejected: Annotated[list[Rejected], Meta(description="Those of the message that are unknown.")]
    epoch: Annotated[
        str | UnsetType, Meta(description="With seq, not on signals and news: which numbering it is.")
    ] = UNSET
    positions: Positions | UnsetType = UNSET
    since: Annotated[
        str | UnsetType,
        Meta(
            description="On signals and news: the place after which they go on, valid in since, for who loses"
            " the connection before the first frame."
        ),
    ] = UNSET
    recovered: Annotated[
        bool | UnsetType, Meta(description="After resume or since: whether everything missed follows.")
    ] = UNSET
    unrecovered: Annotated[
        list[str] | UnsetType,
        Meta(
            description="Symbols that go on from their last frame instead, or on signals and news from now."
            " On candles named as in positions."
        ),
    ] = UNSET
    id: EchoedId = UNSET
    time: Milliseconds


class Unsubscribed(Control, tag="unsubscribed", kw_only=True):
    symbols: Annotated[list[str], Meta(description="Those that are left.")]
    timeframes: Timeframes = UNSET
    categories: Categories = UNSET
    id: EchoedId = UNSET
    time: Milliseconds


class Listed(Control, tag="subscriptions", kw_only=True):
    symbols: list[str]
    timeframes: Timeframes = UNSET
    categories: Categories = UNSET
    id: EchoedId = UNSET
    time: Milliseconds


class Pong(Control, tag="pong", kw_only=True):
    id: EchoedId = UNSET
    time: Milliseconds


class Heartbeat(Control, tag="heartbeat", kw_only=True):
    """After 10 s without another frame, if asked for."""

    time: Milliseconds


NoticeCode = Literal["restarting", "stale", "live", "deactivated", "new_series"]


class Notice(Control, tag="notice", kw_only=True):
    """restarting: this server is about to close the socket with 1012. stale: it hears no engine, so nothing
    comes of these symbols until live; or it stood still for a while, and what comes until then is old.
    deactivated: they are not offered any more. On signals what is still active will close, and on news what
    is about them may still come; on the other streams they are not subscribed to any more either. new_series,
    not on signals and news: simulated prices give way to real ones, or these to those; candles and order flow
    of before belong to the series that ended."""

    code: NoticeCode
    symbols: Annotated[
        list[str] | UnsetType, Meta(description='Not on restarting. ["*"] for who is subscribed to all.')
    ] = UNSET
    time: Milliseconds


class Gap(Control, tag="gap", kw_only=True):
    """The service lost its place: frames of these symbols may be missing, and the numbering is another."""

    symbols: list[str]
    epoch: str
    positions: Positions
    time: Milliseconds


class Conflated(Control, tag="conflated", kw_only=True):
    """With latest: so many ticks were left out, their volumes are in the one that follows."""

    symbol: str
    dropped: int


CONTROLS = (Subscribed, Unsubscribed, Listed, Pong, Heartbeat, Notice, Gap, Conflated, Error)


def subscribed(
    stream: StreamName,
    symbols: list[str],
    rejected: list[Rejected],
    now_ms: int,
    id: Id | UnsetType = UNSET,  # noqa: A002 - the name on the wire
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
