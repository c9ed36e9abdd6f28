"""The data frames: exactly the fields of the specification, and what a client asked for beyond them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, cast

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from core.plain_json import HUGE, TINY, encode, spelled_out
from core.struct_schemas import Symbol
from market.prices.history import CandleRow, encode_row
from market.prices.order_flow import WINDOW_MS, Side
from market.prices.records import AbsorptionFound, ClosedCandle, TickAccepted
from market.streams.hub.subscribers import ReplaceablePublication
from market.streams.protocol.messages import Milliseconds, RequestedFeature, Timeframe
from market.streams.protocol.subscriptions import Conflated

_encode = msgspec.json.Encoder().encode

# A price with this many digits is never below 0.00001.
PLAIN_DIGITS = 5


class PriceTick(msgspec.Struct, gc=False):
    symbol: Symbol
    bid: Annotated[float, Meta(description="The price at which you can sell.")]
    ask: Annotated[float, Meta(description="The price at which you can buy.")]
    spread: Annotated[float, Meta(description="`ask` − `bid`, in price units.")]
    time: Milliseconds
    volume: Annotated[float, Meta(description="The volume since the previous tick.")]


class OrderFlowTick(msgspec.Struct, gc=False):
    symbol: Symbol
    bid_volume: Annotated[float, Meta(description="The volume that takers sold.")]
    ask_volume: Annotated[float, Meta(description="The volume that takers bought.")]
    delta: Annotated[float, Meta(description="`ask_volume` − `bid_volume`.")]
    cumulative_delta: Annotated[float, Meta(description="The sum of `delta` since 00:00 UTC.")]
    price: Annotated[
        float, Meta(description="The price of the trade, or the mid where the side is estimated.")
    ]
    time: Milliseconds


class AbsorptionSignal(msgspec.Struct, gc=False, tag="absorption"):
    """One side absorbed heavy trading, and the price held."""

    symbol: Symbol
    side: Annotated[Side, Meta(description="The passive side, which absorbed the trading.")]
    price: Annotated[
        float,
        Meta(
            description="The volume-weighted mean price of the absorbed trades, in the instrument's digits."
        ),
    ]
    volume: Annotated[
        float,
        Meta(
            description="The volume absorbed in the window: what takers sold for `bid`, what they bought"
            " for `ask`. The other side is not included."
        ),
    ]
    delta: Annotated[
        float,
        Meta(description="Over the whole window and both sides: volume bought − volume sold."),
    ]
    price_range: Annotated[
        float,
        Meta(description="Over the whole window and both sides: highest − lowest price."),
    ]
    window_ms: Annotated[int, Meta(description="The length of the window.")]
    strength: Annotated[
        float, Meta(description="How many standard deviations the volume is above the mean of this side.")
    ]
    time: Annotated[Milliseconds, Meta(description="The end of the window.")]


class StreamedCandle(msgspec.Struct, gc=False):
    """As in GET /api/market."""

    time: Annotated[str, Meta(description="The start of its interval, in ISO 8601 and UTC.")]
    open: Annotated[float, Meta(description="The first price.")]
    high: Annotated[float, Meta(description="The highest price.")]
    low: Annotated[float, Meta(description="The lowest price.")]
    close: Annotated[float, Meta(description="The last price.")]
    volume: Annotated[float, Meta(description="The size of the trades, or the number of ticks.")]


class CandleUpdate(msgspec.Struct, gc=False):
    """A later frame with the same symbol, timeframe and candle.time replaces this one: for example, when a
    missed minute is added to an hour that was closed, or when the market reopens."""

    symbol: Symbol
    timeframe: Annotated[Timeframe, Meta(description="The interval of the candle.")]
    candle: Annotated[StreamedCandle, Meta(description="Its prices and volume.")]
    closed: Annotated[
        bool,
        Meta(description="`false` while the candle is forming: only on request, and never numbered."),
    ]
    time: Annotated[
        Milliseconds,
        Meta(
            description="For a closed candle, the end of its interval, or of the last session in it if that"
            " was earlier; for a forming one, the time of the last tick."
        ),
    ]


def candle_update(symbol: str, timeframe: str, row: CandleRow, *, is_closed: bool, time_ms: int) -> bytes:
    """The candle is the same to the byte as REST has it."""
    closed = b"true" if is_closed else b"false"
    names = symbol.encode(), timeframe.encode()
    return b'{"symbol":"%b","timeframe":"%b","candle":%b,"closed":%b,"time":%d}' % (
        *names,
        encode_row(row),
        closed,
        time_ms,
    )


def closed_candle(symbol: str, closed: ClosedCandle) -> bytes:
    row = CandleRow(closed.opened_ms, closed.open, closed.high, closed.low, closed.close, closed.volume)
    return candle_update(symbol, closed.timeframe, row, is_closed=True, time_ms=closed.ended_ms)


def price_tick(taken: TickAccepted, digits: int) -> bytes:
    spread = round(taken.ask - taken.bid, digits)
    data = _encode(PriceTick(taken.symbol, taken.bid, taken.ask, spread, taken.time_ms, taken.volume))
    # Comparing is cheaper than searching the text, and seldom needed: five digits have no exponent.
    return spelled_out(data) if digits > PLAIN_DIGITS or 0 < taken.volume < TINY else data


def order_flow_tick(taken: TickAccepted) -> bytes | None:
    """None for a tick that is not part of the order flow."""
    if not taken.flow_seq:
        return None
    sold, bought = taken.bid_volume, taken.ask_volume
    summed = taken.cumulative_delta
    data = _encode(
        OrderFlowTick(taken.symbol, sold, bought, bought - sold, summed, taken.price, taken.time_ms)
    )
    if 0 < sold + bought < TINY or taken.price < TINY or 0 < abs(summed) < TINY or abs(summed) >= HUGE:
        return spelled_out(data)
    return data


def absorption(found: AbsorptionFound) -> bytes:
    return encode(
        AbsorptionSignal(
            symbol=found.symbol,
            side=cast(Side, found.side),
            price=found.price,
            volume=found.volume,
            delta=found.delta,
            price_range=found.price_range,
            window_ms=WINDOW_MS,
            strength=found.strength,
            time=found.time_ms,
        )
    )


# The bits of a variant.
SEQ, SENT = 1, 2


def extended(frame: bytes, seq: int, sent_ms: int, variant: int) -> bytes:
    """The same frame with its number, its time of sending or both spliced in, not encoded again."""
    if not variant:
        return frame
    if variant == SEQ:
        return b'%b,"seq":%d}' % (frame[:-1], seq)
    if variant == SENT:
        return b'%b,"sent":%d}' % (frame[:-1], sent_ms)
    return b'%b,"seq":%d,"sent":%d}' % (frame[:-1], seq, sent_ms)


# Volumes are whole hundred-millionths, and their sums are rounded to them.
VOLUME_DIGITS = 8


def variant_of(features: Collection[RequestedFeature]) -> int:
    return SEQ * ("seq" in features) + SENT * ("lag" in features)


class OutgoingFrame:
    __slots__ = ("frame", "sent_ms", "seq")

    def __init__(self, frame: bytes, seq: int, sent_ms: int) -> None:
        self.frame, self.seq, self.sent_ms = frame, seq, sent_ms

    def payload(self, variant: int) -> bytes:
        return extended(self.frame, self.seq, self.sent_ms, variant)


class FormingCandle(OutgoingFrame):
    """Without a number: the next one replaces it."""

    __slots__ = ()

    def payload(self, variant: int) -> bytes:
        return extended(self.frame, self.seq, self.sent_ms, variant & SENT)


class OutgoingPrice(OutgoingFrame):
    """It can replace the ticks before it, for clients that asked for the latest alone."""

    __slots__ = ("digits", "taken")

    def __init__(self, taken: TickAccepted, digits: int, sent_ms: int) -> None:
        super().__init__(price_tick(taken, digits), taken.seq, sent_ms)
        self.taken, self.digits = taken, digits

    def over(self, older: ReplaceablePublication) -> OutgoingPrice:
        before = cast(OutgoingPrice, older).taken
        volume = round(before.volume + self.taken.volume, VOLUME_DIGITS)
        return OutgoingPrice(replace(self.taken, volume=volume), self.digits, self.sent_ms)

    def notice(self, dropped: int) -> bytes:
        return encode(Conflated(symbol=self.taken.symbol, dropped=dropped))


def outgoing_flow(record: TickAccepted | AbsorptionFound, sent_ms: int) -> OutgoingFrame | None:
    """None for a tick that is not part of the order flow."""
    frame = absorption(record) if isinstance(record, AbsorptionFound) else order_flow_tick(record)
    return None if frame is None else OutgoingFrame(frame, record.flow_seq, sent_ms)
