"""GET /api/signals, the public feed, newest first, and GET /api/signals/{id}, one signal."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Annotated, Any
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType
from rest_framework.request import Request

from core.contract.answers import Answer
from core.contract.errors import InvalidCursor, InvalidParameter, NotFound, SymbolNotFound
from core.contract.parameters import (
    ChoiceParameter,
    IntegerParameter,
    QuerySerializer,
    TextParameter,
    TimeParameter,
    check_span,
    describes,
)
from core.contract.ranges import Cursors, Range, RangeSerializer, read_range
from core.database import CompiledQuery
from core.threads import in_thread_promptly
from instruments.catalogue import catalogue
from signals_feed.models import Signal, SignalQuerySet
from signals_feed.publishers.lookup import NO_SUCH_PUBLISHER, find
from signals_feed.wire import ACTIVE_SAMPLE, CLOSED_SAMPLE, COLUMNS, AnySignal, encode_signal

from .ledger import LedgerActions

CURSORS = Cursors("signals")
Rows = Sequence[tuple[Any, ...]]
AT, PK = COLUMNS.index("published_at"), COLUMNS.index("id")
ABOUT = (
    "Newest first. A closed signal carries its result; an active one has none yet. With "
    "`start`, `end` or `cursor`, the response has `next`, the cursor of the next page, or null: "
    "together, the pages contain each signal once, whatever is published or closed in the meantime. Each "
    "page lists the signals that have the `status` at that time; with `all`, none is missed. "
    "`closed_start` and `closed_end` choose the signals that were closed between two times, and add `next` "
    "as well. A signal is listed once its close is stored, up to seconds after its `closed_at`: ask for a "
    "few seconds twice if you follow closes in this way."
)
NO_CLOSE = "An active signal has no close. With closed_start or closed_end, status must be closed or all."
NO_SUCH_SIGNAL = "There is no signal with this id. GET /api/signals?status=all lists them."


def uuid_of(text: str) -> UUID | None:
    """Only the feed's own spelling: Python would also read braces and a prefix."""
    try:
        found = UUID(text)
    except ValueError:
        return None
    return found if str(found) == text.lower() else None


class SignalsQuerySerializer(RangeSerializer):
    status = ChoiceParameter(
        ("active", "closed", "all"),
        default="active",
        help_text="Which signals to return; `all` means both kinds.",
    )
    limit = IntegerParameter(default=50, max_value=500, help_text="Maximum number of signals.")
    closed_start = TimeParameter(
        help_text="Only signals that were closed at this time or later, in the format of `start`; with a "
        "`status` of `closed` or `all`."
    )
    closed_end = TimeParameter(help_text="Only signals that were closed before this time, likewise.")


class FilterSerializer(QuerySerializer):
    """Read first: an unknown symbol or user is refused before any other bad parameter."""

    symbol = TextParameter(help_text="Only signals for this instrument; upper or lower case.")
    user = TextParameter(
        help_text="Only signals of this publisher; the name as shown in the feed, or a former one."
    )


class SignalList(msgspec.Struct):
    items: Annotated[list[AnySignal], Meta(description="Newest first.")]
    count: Annotated[int, Meta(ge=0, description="Signals in this response.")]
    next: Annotated[
        str | None | UnsetType,
        Meta(description="Only with a range of time or `cursor`: the cursor of the next page."),
    ] = UNSET


class SignalViewSet(LedgerActions):
    lookup_field, lookup_value_regex = "id", "[^/]+"

    @describes(
        "listSignals",
        SignalList,
        "The public feed of trade signals",
        tag="Signals",
        examples={
            "One active signal": SignalList([ACTIVE_SAMPLE], 1),
            "Both kinds": SignalList([ACTIVE_SAMPLE, CLOSED_SAMPLE], 2),
            "The last page of a range": SignalList([CLOSED_SAMPLE], 1, None),
        },
        details=ABOUT,
        query=[SignalsQuerySerializer, FilterSerializer],
        refusals=[
            InvalidCursor(field="cursor"),
            SymbolNotFound("There is no such symbol. Did you mean EURUSD?", field="symbol"),
            NotFound(NO_SUCH_PUBLISHER, field="user"),
        ],
    )
    async def list(self, request: Request) -> Answer:
        found = self.parameters(FilterSerializer)
        symbol, user = found["symbol"], found["user"]
        instrument_id = None if symbol is None else catalogue.get_any(symbol).id
        try:
            wanted = self.parameters(SignalsQuerySerializer)
            status, limit, closed = wanted["status"], wanted["limit"], closed_span(wanted)
            # Cursors of an earlier version know nothing of closes.
            asked = (status, instrument_id, user, *(closed or ()))
            span = read_range(wanted, CURSORS, *asked, is_paged=closed is not None)
        except InvalidParameter:
            if user is not None:
                await in_thread_promptly(present_name, user)
            raise
        if span is None:
            return Answer(await in_thread_promptly(read_feed, status, instrument_id, limit, user))
        return Answer(await in_thread_promptly(read_page, span, closed, status, instrument_id, limit, user))

    @describes(
        "getSignal",
        AnySignal,
        "One signal, as the feed shows it",
        tag="Signals",
        examples={"An active signal": ACTIVE_SAMPLE, "A closed signal": CLOSED_SAMPLE},
        details="Active or closed, of any age, including those of instruments that are no longer offered.",
        refusals=[NotFound(NO_SUCH_SIGNAL)],
    )
    async def retrieve(self, request: Request, id: str) -> Answer:  # noqa: A002 - the name in the path
        pk = uuid_of(id)
        body = None if pk is None else await in_thread_promptly(read_signal, pk)
        if body is None:
            raise NotFound(NO_SUCH_SIGNAL)
        return Answer(body)


def read_feed(status: str, instrument_id: int | None, limit: int, user: str | None = None) -> bytes:
    rows = rows_of(user, lambda name: feed_statement(status, instrument_id, limit, name).rows())
    return b"{%s}" % encode_rows(rows)


def closed_span(wanted: dict[str, Any]) -> tuple[int | None, int | None] | None:
    """When the signals were closed, if the request says so."""
    closed: tuple[int | None, int | None] = wanted["closed_start"], wanted["closed_end"]
    if closed == (None, None):
        return None
    check_span(*closed, "closed_")
    if wanted["status"] == Signal.Status.ACTIVE:
        raise InvalidParameter(NO_CLOSE, field="status", allowed=["closed", "all"])
    return closed


def read_page(
    span: Range,
    closed: tuple[int | None, int | None] | None,
    status: str,
    instrument_id: int | None,
    limit: int,
    user: str | None,
) -> bytes:
    def read(name: str | None) -> Rows:
        signals = span.of(feed(status, instrument_id, name))
        if closed is not None:
            # Said for the index, which has only these.
            signals = signals.filter(status=Signal.Status.CLOSED).closed_between(*closed)
        return CompiledQuery(signals.values_list(*COLUMNS)[: limit + 1]).rows()

    shown, following = span.page(rows_of(user, read), limit, AT, PK)
    return b'{%s,"next":%s}' % (encode_rows(shown), following)


def rows_of(user: str | None, read: Callable[[str | None], Rows]) -> Rows:
    """Of a publisher, also by a former name."""
    # PostgreSQL accepts no text with a zero byte.
    rows = read(user) if user is None or "\0" not in user else []
    if rows or user is None:
        return rows
    # Otherwise a misspelt name would be an empty feed.
    name = present_name(user)
    return [] if name == user else read(name)


def present_name(user: str) -> str:
    publisher = find(user)
    if publisher is None:
        raise NotFound(NO_SUCH_PUBLISHER, field="user")
    return publisher.name


def encode_rows(rows: Rows) -> bytes:
    return b'"items":[%s],"count":%d' % (b",".join(map(encode_signal, rows)), len(rows))


def read_signal(pk: UUID) -> bytes | None:
    row = Signal.objects.filter(pk=pk).values_list(*COLUMNS).first()
    return None if row is None else encode_signal(row)


@lru_cache(maxsize=512)
def feed_statement(
    status: str, instrument_id: int | None, limit: int, user: str | None = None
) -> CompiledQuery:
    return CompiledQuery(feed(status, instrument_id, user).values_list(*COLUMNS)[:limit])


def feed(status: str, instrument_id: int | None, user: str | None) -> SignalQuerySet:
    return Signal.objects.for_feed().with_status(status).for_instrument(instrument_id).by_publisher(user)
