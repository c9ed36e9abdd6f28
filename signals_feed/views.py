"""GET /api/signals: the public feed, newest first, and one of it by its id."""

from __future__ import annotations

from functools import lru_cache
from uuid import UUID

from django.http import HttpRequest

from accounts.api import Answer, ApiViewSet
from accounts.exceptions import InvalidParameter, NotFound, SymbolNotFound
from accounts.schema import describes
from accounts.statements import Statement
from accounts.threads import in_thread_promptly
from instruments.catalogue import catalogue

from .ids import NO_SUCH_SIGNAL, uuid_of
from .items import COLUMNS, encode_signal
from .models import Signal
from .publishers import NO_SUCH_PUBLISHER, has_published
from .serializers import ONE_SIGNAL, FilterSerializer, SignalListSerializer, SignalsQuerySerializer


class SignalViewSet(ApiViewSet):
    @describes(
        "listSignals",
        SignalListSerializer,
        "The public feed of trade signals",
        tag="Signals",
        details="Newest first. A closed signal carries its verified result; an active one none of it.",
        query=[SignalsQuerySerializer, FilterSerializer],
        refused_queries=["status=open", "limit=0", "limit=1.5"],
        refusals=[
            SymbolNotFound("There is no such symbol. Did you mean EURUSD?", field="symbol"),
            NotFound(NO_SUCH_PUBLISHER, field="user"),
        ],
    )
    async def list(self, request: HttpRequest) -> Answer:
        found = self.parameters(request, FilterSerializer)
        symbol, user = found["symbol"], found["user"]
        instrument_id = None if symbol is None else catalogue.get_any(symbol).id
        try:
            wanted = self.parameters(request, SignalsQuerySerializer)
        except InvalidParameter:
            await in_thread_promptly(check_publisher, user)
            raise
        return Answer(
            await in_thread_promptly(read_feed, wanted["status"], instrument_id, wanted["limit"], user)
        )

    @describes(
        "getSignal",
        ONE_SIGNAL,
        "One signal, as the feed shows it",
        tag="Signals",
        details="Active or closed, of whatever age, also of an instrument that is not offered any more.",
        refusals=[NotFound(NO_SUCH_SIGNAL)],
    )
    async def retrieve(self, request: HttpRequest, id: str) -> Answer:  # noqa: A002 - the name in the path
        pk = uuid_of(id)
        body = None if pk is None else await in_thread_promptly(read_signal, pk)
        if body is None:
            raise NotFound(NO_SUCH_SIGNAL)
        return Answer(body)


def read_feed(status: str, instrument_id: int | None, limit: int, user: str | None = None) -> bytes:
    if user is not None and "\0" in user:
        # PostgreSQL takes no such text, so nobody has that name.
        check_publisher(user)
    items = [encode_signal(row) for row in feed_statement(status, instrument_id, limit, user).rows()]
    if not items:
        # A misspelt name would be an empty feed for ever.
        check_publisher(user)
    return b'{"items":[%s],"count":%d}' % (b",".join(items), len(items))


def check_publisher(user: str | None) -> None:
    if user is not None and not has_published(user):
        raise NotFound(NO_SUCH_PUBLISHER, field="user")


def read_signal(pk: UUID) -> bytes | None:
    row = Signal.objects.filter(pk=pk).values_list(*COLUMNS).first()
    return None if row is None else encode_signal(row)


@lru_cache(maxsize=512)
def feed_statement(status: str, instrument_id: int | None, limit: int, user: str | None = None) -> Statement:
    signals = Signal.objects.for_feed().with_status(status).for_instrument(instrument_id).by_publisher(user)
    return Statement(signals.values_list(*COLUMNS)[:limit])
