"""GET /api/signals: the public feed, newest first."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.http import HttpRequest

from accounts.api import Answer, ApiViewSet, encode, iso_time
from accounts.exceptions import SymbolNotFound
from accounts.schema import describes
from accounts.statements import Statement
from accounts.threads import in_thread
from instruments.catalogue import catalogue

from .models import Signal
from .serializers import SignalListSerializer, SignalsQuerySerializer, SymbolFilterSerializer

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


class SignalViewSet(ApiViewSet):
    @describes(
        "listSignals",
        SignalListSerializer,
        "The public feed of trade signals",
        tag="Signals",
        details="Newest first. A closed signal carries its verified result; an active one none of it.",
        query=[SignalsQuerySerializer, SymbolFilterSerializer],
        refused_queries=["status=open", "limit=0", "limit=1.5"],
        refusals=[SymbolNotFound("There is no such symbol. Did you mean EURUSD?", field="symbol")],
    )
    async def list(self, request: HttpRequest) -> Answer:
        symbol = self.parameters(request, SymbolFilterSerializer)["symbol"]
        instrument_id = None if symbol is None else catalogue.get_any(symbol).id
        wanted = self.parameters(request, SignalsQuerySerializer)
        return Answer(await in_thread(read_feed, wanted["status"], instrument_id, wanted["limit"]))


def read_feed(status: str, instrument_id: int | None, limit: int) -> bytes:
    items = [encode_signal(row) for row in feed_statement(status, instrument_id, limit).rows()]
    return b'{"items":[%s],"count":%d}' % (b",".join(items), len(items))


@lru_cache(maxsize=512)
def feed_statement(status: str, instrument_id: int | None, limit: int) -> Statement:
    signals = Signal.objects.for_feed().with_status(status).for_instrument(instrument_id)
    return Statement(signals.values_list(*COLUMNS)[:limit])


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
