"""A signal as clients get it: REST answers it like this, and the stream pushes it."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import Any, Literal
from uuid import UUID

import msgspec

from core.contract.answers import iso_time
from core.plain_json import encode
from market.streams.docs.asyncapi import Channel
from market.streams.protocol.messages import SIGNALS, Milliseconds

ACTIVE_SAMPLE = {
    "id": "6f1c2f5e-8f0b-4a53-9d0e-2b8f6f6f9a01",
    "user": "marta",
    "symbol": "EURUSD",
    "direction": "buy",
    "entry": 1.0842,
    "stop_loss": 1.081,
    "take_profit": 1.09,
    "status": "active",
    "timestamp": "2026-11-20T09:12:44.118Z",
}
CLOSED_SAMPLE = {
    "id": "0b7d1a9c-3a5e-4c86-8a43-5f0f5f3f1d77",
    "user": "kenji",
    "symbol": "XAUUSD",
    "direction": "sell",
    "entry": 2651.4,
    "stop_loss": 2660.4,
    "take_profit": 2633.4,
    "status": "closed",
    "timestamp": "2026-11-19T15:40:02.730Z",
    "pnl": 1800.0,
    "pnl_percent": 0.6789,
    "pnl_r": 2.0,
    "close_price": 2633.4,
    "closed_at": "2026-11-20T08:31:17.004Z",
    "close_reason": "take_profit",
}

COLUMNS = (
    "id",
    "user__username",
    "instrument__symbol",
    "instrument__digits",
    "direction",
    "entry",
    "stop_loss",
    "take_profit",
    "status",
    "published_at",
    "pnl",
    "pnl_percent",
    "pnl_r",
    "close_price",
    "closed_at",
    "close_reason",
)


@lru_cache(maxsize=4096)
def encode_signal(row: tuple[Any, ...]) -> bytes:
    """Remembered by all that the database said of it: when that changes, it is another row."""
    return encode(describe(*row))


def describe(
    id_: UUID | str,
    user: str,
    symbol: str,
    digits: int,
    direction: str,
    entry: float,
    stop_loss: float,
    take_profit: float,
    status: str,
    published_at: datetime,
    *result: Any,
) -> dict[str, Any]:
    item = {
        # SQLite keeps it as 32 hexadecimal digits.
        "id": str(UUID(str(id_))),
        "user": user,
        "symbol": symbol,
        "direction": direction,
        "entry": round(float(entry), digits),
        "stop_loss": round(float(stop_loss), digits),
        "take_profit": round(float(take_profit), digits),
        "status": status,
        "timestamp": iso_time(published_at),
    }
    return item if status == "active" else item | describe_result(digits, *result)


def describe_result(
    digits: int,
    pnl: float,
    pnl_percent: float,
    pnl_r: float,
    close_price: float,
    closed_at: datetime,
    close_reason: str,
) -> dict[str, Any]:
    return {
        "pnl": float(pnl),
        "pnl_percent": float(pnl_percent),
        "pnl_r": float(pnl_r),
        "close_price": round(float(close_price), digits),
        "closed_at": iso_time(closed_at),
        "close_reason": close_reason,
    }


Direction = Literal["buy", "sell"]


class NewSignal(msgspec.Struct):
    id: str
    user: str
    symbol: str
    direction: Direction
    entry: float
    stop_loss: float
    take_profit: float
    timestamp: str
    time: Milliseconds


class SignalClosed(msgspec.Struct, tag="signal.closed"):
    """Only with events: ["signal.closed"]."""

    id: str
    user: str
    symbol: str
    direction: Direction
    entry: float
    stop_loss: float
    take_profit: float
    status: Literal["closed"]
    timestamp: str
    pnl: float
    pnl_percent: float
    pnl_r: float
    close_price: float
    closed_at: str
    close_reason: Literal["take_profit", "stop_loss", "manual", "expired", "cancelled"]
    time: Milliseconds


PUBLISHED_FRAME_SAMPLE = {name: value for name, value in ACTIVE_SAMPLE.items() if name != "status"} | {
    "time": 1_795_165_964_118
}
CLOSED_FRAME_SAMPLE = {"type": "signal.closed", **CLOSED_SAMPLE, "time": 1_795_163_477_004}
CHANNEL = Channel(
    SIGNALS,
    "Signals",
    "Every signal that is published. Without `symbols`: of all instruments.",
    (NewSignal, SignalClosed),
    {NewSignal: {"Published": PUBLISHED_FRAME_SAMPLE}, SignalClosed: {"Target reached": CLOSED_FRAME_SAMPLE}},
)
