"""A signal as clients get it, in answers of REST and on the stream."""

from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

import msgspec
from msgspec import Meta
from msgspec.structs import asdict

from core.plain_json import encode
from core.struct_schemas import Moment, Symbol, one_of
from core.times import epoch_ms_before, iso_time
from market.streams.protocol.messages import Milliseconds

Direction = Literal["buy", "sell"]
CloseReason = Literal["take_profit", "stop_loss", "manual", "expired", "cancelled"]
Publisher = Annotated[str, Meta(description="Publisher.")]
SignalId = Annotated[str, Meta(description="Identifier of the signal.")]
Side = Meta(description="The direction of the trade.")
Status = Meta(description="A signal is active until it is closed, once and for good.")
CloseReasons = Meta(description="What closed it.")
PublishedAt = Annotated[Moment, Meta(description="When it was published.")]


class SignalFacts(msgspec.Struct):
    id: SignalId
    user: Publisher
    symbol: Symbol
    direction: Annotated[Direction, Side]
    entry: Annotated[float, Meta(description="The price at which the publisher enters.")]
    stop_loss: Annotated[
        float, Meta(description="The stop-loss price, at which the signal is closed at a loss.")
    ]
    take_profit: Annotated[
        float, Meta(description="The take-profit price, at which the signal is closed at a profit.")
    ]


class ActiveSignal(SignalFacts):
    status: Annotated[Literal["active"], Status]
    timestamp: PublishedAt


class ClosedSignal(SignalFacts):
    status: Annotated[Literal["closed"], Status]
    timestamp: PublishedAt
    pnl: Annotated[float, Meta(description="Signed pips, computed by the service from its own ticks.")]
    pnl_percent: Annotated[float, Meta(description="The gain as a percentage of the price paid.")]
    pnl_r: Annotated[float, Meta(description="In units of the risk taken.")]
    close_price: Annotated[float, Meta(description="The price at which it closed.")]
    closed_at: Annotated[Moment, Meta(description="When it closed.")]
    close_reason: Annotated[CloseReason, CloseReasons]


AnySignal = Annotated[ActiveSignal | ClosedSignal, one_of("Signal", "status")]


class NewSignal(SignalFacts):
    timestamp: PublishedAt
    time: Milliseconds


class SignalClosed(ClosedSignal, tag="signal.closed"):
    """Sent only if you subscribe with `"events": ["signal.closed"]`."""

    time: Milliseconds


COLUMNS = (
    *("id", "user__username", "instrument__symbol", "instrument__digits", "direction"),
    *("entry", "stop_loss", "take_profit", "status", "published_at"),
    *("pnl", "pnl_percent", "pnl_r", "close_price", "closed_at", "close_reason"),
)


class SignalRow(NamedTuple):
    """The values of `COLUMNS`."""

    id: UUID | str
    user: str
    symbol: str
    digits: int
    direction: Direction
    entry: Decimal
    stop_loss: Decimal
    take_profit: Decimal
    status: str
    published_at: datetime
    pnl: Decimal
    pnl_percent: Decimal
    pnl_r: Decimal
    close_price: Decimal
    closed_at: datetime
    close_reason: CloseReason

    def facts(self) -> dict[str, Any]:
        return {
            # SQLite keeps it as 32 hexadecimal digits.
            "id": str(UUID(str(self.id))),
            "user": self.user,
            "symbol": self.symbol,
            "direction": self.direction,
            "entry": round(float(self.entry), self.digits),
            "stop_loss": round(float(self.stop_loss), self.digits),
            "take_profit": round(float(self.take_profit), self.digits),
            "timestamp": iso_time(self.published_at),
        }

    def closed_facts(self) -> dict[str, Any]:
        return {
            **self.facts(),
            "status": "closed",
            "pnl": float(self.pnl),
            "pnl_percent": float(self.pnl_percent),
            "pnl_r": float(self.pnl_r),
            "close_price": round(float(self.close_price), self.digits),
            "closed_at": iso_time(self.closed_at),
            "close_reason": self.close_reason,
        }


# Two of the largest answers; each takes two kilobytes or more, most of them for its columns.
@lru_cache(maxsize=1024)
def encode_signal(columns: tuple[Any, ...]) -> bytes:
    """Cached by all columns: a signal that changes is another row."""
    row = SignalRow(*columns)
    if row.status == "active":
        return encode(ActiveSignal(**row.facts(), status="active"))
    return encode(ClosedSignal(**row.closed_facts()))


def encode_new_signal(row: SignalRow) -> bytes:
    """A signal may be closed by the time its publication is sent; its terms are still the same."""
    return encode(NewSignal(**row.facts(), time=epoch_ms_before(row.published_at)))


def encode_closure(row: SignalRow) -> bytes:
    return encode(SignalClosed(**row.closed_facts(), time=epoch_ms_before(row.closed_at)))


ACTIVE_SAMPLE = ActiveSignal(
    id="6f1c2f5e-8f0b-4a53-9d0e-2b8f6f6f9a01",
    user="marta",
    symbol="EURUSD",
    direction="buy",
    entry=1.0842,
    stop_loss=1.081,
    take_profit=1.09,
    status="active",
    timestamp="2026-11-20T09:12:44.118Z",
)
CLOSED_SAMPLE = ClosedSignal(
    id="0b7d1a9c-3a5e-4c86-8a43-5f0f5f3f1d77",
    user="kenji",
    symbol="XAUUSD",
    direction="sell",
    entry=2651.4,
    stop_loss=2660.4,
    take_profit=2633.4,
    status="closed",
    timestamp="2026-11-19T15:40:02.730Z",
    pnl=1800.0,
    pnl_percent=0.6789,
    pnl_r=2.0,
    close_price=2633.4,
    closed_at="2026-11-20T08:31:17.004Z",
    close_reason="take_profit",
)
NEW_SAMPLE = msgspec.convert({**asdict(ACTIVE_SAMPLE), "time": 1_795_165_964_118}, NewSignal)
CLOSURE_SAMPLE = msgspec.convert({**asdict(CLOSED_SAMPLE), "time": 1_795_163_477_004}, SignalClosed)
