"""A signal as clients get it: REST answers it like this, and the stream pushes it."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from accounts.api import encode, iso_time

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
