"""GET /api/signals: the public feed, newest first."""

from __future__ import annotations

from functools import lru_cache

from django.http import HttpRequest

from accounts.api import Answer, ApiViewSet
from accounts.exceptions import SymbolNotFound
from accounts.schema import describes
from accounts.statements import Statement
from accounts.threads import in_thread
from instruments.catalogue import catalogue

from .items import COLUMNS, encode_signal
from .models import Signal
from .serializers import SignalListSerializer, SignalsQuerySerializer, SymbolFilterSerializer


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
