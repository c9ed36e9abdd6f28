"""GET /api/signals: the public feed, newest first."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

from django.http import HttpRequest

from accounts.api import Answer, ApiViewSet, encode, iso_time
from accounts.threads import in_thread
from instruments.catalogue import catalogue

from .models import Signal
from .serializers import SignalsQuerySerializer, SymbolFilterSerializer

COLUMNS = (
    "id",
    "user__username",
    "instrument_id",
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
    async def list(self, request: HttpRequest) -> Answer:
        symbol = self.parameters(request, SymbolFilterSerializer)["symbol"]
        instrument_id = None if symbol is None else catalogue.get_any(symbol).id
        wanted = self.parameters(request, SignalsQuerySerializer)
        items = await in_thread(read_feed, wanted["status"], instrument_id, wanted["limit"])
        return Answer(encode({"items": items, "count": len(items)}))


def read_feed(status: str, instrument_id: int | None, limit: int) -> list[dict[str, Any]]:
    signals = Signal.objects.for_feed().with_status(status).for_instrument(instrument_id)
    facts = {facts.id: (facts.symbol, facts.digits) for facts in catalogue.all()}
    return [describe(row, *facts[row[2]]) for row in signals.values_list(*COLUMNS)[:limit]]


def describe(row: tuple[Any, ...], symbol: str, digits: int) -> dict[str, Any]:
    (id_, user, _, direction, entry, stop_loss, take_profit, status, published_at, *result) = row
    item = {
        "id": str(id_),
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
    pnl: Decimal,
    pnl_percent: Decimal,
    pnl_r: Decimal,
    close_price: Decimal,
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
