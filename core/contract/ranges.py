"""Pages of what is listed newest first, ties by id descending: from a range of time, after a cursor."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, NamedTuple, TypeVar

import msgspec
from django.core.signing import BadSignature, Signer
from django.db import models
from django.db.models import BooleanField, DateTimeField, F, Func, QuerySet, Value

from core.plain_json import encode
from core.times import EPOCH, moment

from .errors import InvalidCursor
from .parameters import QuerySerializer, TextParameter, TimeParameter, check_span

# Cursors: where the next page of an answer begins, signed. The server stores none, so they survive a restart.
# The limit is longer than any that is issued.
LONGEST = 500


class Cursors:
    """Those of one path. `asked` is what the request asked for, without its cursor and its limit."""

    def __init__(self, name: str) -> None:
        self._salt = f"cursor.{name}"

    def seal(self, asked: Sequence[Any], position: Any) -> str:
        """`position` is plain: numbers, texts, lists of them."""
        text = urlsafe_b64encode(encode((fingerprint(asked), position))).decode().rstrip("=")
        return self._signer().sign(text)

    def open(self, cursor: str, asked: Sequence[Any]) -> Any:
        """The position, or InvalidCursor."""
        try:
            if len(cursor) > LONGEST:
                raise BadSignature
            text = self._signer().unsign(cursor)
        except BadSignature:
            raise InvalidCursor(field="cursor") from None
        of, position = msgspec.json.decode(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        if of != fingerprint(asked):
            raise InvalidCursor(field="cursor")
        return position

    def _signer(self) -> Signer:
        # Made each time: a secret may be replaced while the process runs, and its fallbacks stay good.
        return Signer(salt=self._salt, sep=".")


def fingerprint(asked: Sequence[Any]) -> str:
    return sha256(encode(asked)).hexdigest()[:16]


MICROSECOND = timedelta(microseconds=1)
Rows = TypeVar("Rows", bound=QuerySet[Any, Any])


class RangeSerializer(QuerySerializer):
    """With any of these an answer has `next`."""

    start = TimeParameter(
        help_text="Only items with this timestamp or a later one, as a UTC day, an ISO 8601 time with its "
        "zone or milliseconds since the epoch."
    )
    end = TimeParameter(
        help_text="Only items with an earlier timestamp than this, in the same format; a day is itself "
        "excluded."
    )
    cursor = TextParameter(
        help_text="`next` of the previous page, with the parameters of its request; only `limit` may differ."
    )


class PageEnd(NamedTuple):
    """The last item of a page."""

    at: datetime
    pk: Any


class Range(NamedTuple):
    """Of the times in the column `published_at`."""

    cursors: Cursors
    asked: tuple[Any, ...]
    start_ms: int | None
    end_ms: int | None
    after: PageEnd | None

    def of(self, rows: Rows) -> Rows:
        """Its rows of these, which are ordered, with one index for order and range."""
        if self.start_ms is not None:
            rows = rows.filter(published_at__gte=moment(self.start_ms))
        if self.end_ms is not None:
            rows = rows.filter(published_at__lt=moment(self.end_ms))
        if self.after is not None:
            key: models.Field[Any, Any] = rows.model._meta.pk
            at = Value(self.after.at, DateTimeField())
            rows = rows.filter(IsBefore("published_at", "pk", at, Value(key.to_python(self.after.pk), key)))
        return rows

    def page(self, rows: Sequence[tuple[Any, ...]], limit: int, at: int, pk: int) -> tuple[Any, bytes]:
        """Of at most one row more than the page: the rows of the page, and `next` as it is written. `at` and
        `pk` say where in a row its time and its key stand."""
        if len(rows) <= limit:
            return rows, b"null"
        last = rows[limit - 1]
        return rows[:limit], encode(self.cursors.seal(self.asked, (microseconds(last[at]), str(last[pk]))))


def read_range(wanted: dict[str, Any], cursors: Cursors, *asked: Any, is_paged: bool = False) -> Range | None:
    """The range; None without parameters, unless the answer has pages all the same. `asked` is the rest of
    the request."""
    start_ms, end_ms, cursor = wanted["start"], wanted["end"], wanted["cursor"]
    if start_ms is end_ms is cursor is None and not is_paged:
        return None
    check_span(start_ms, end_ms)
    asked = (*asked, start_ms, end_ms)
    after = None
    if cursor is not None:
        at, pk = cursors.open(cursor, asked)
        after = PageEnd(EPOCH + at * MICROSECOND, pk)
    return Range(cursors, asked, start_ms, end_ms, after)


def microseconds(at: datetime) -> int:
    """Since the epoch; a naive one comes from SQLite, which keeps UTC without saying so."""
    return ((at if at.tzinfo else at.replace(tzinfo=UTC)) - EPOCH) // MICROSECOND


class IsBefore(Func):
    """Whether the first two values, as a pair, are less than the last two. With two comparisons joined by OR,
    a database would read all rows of the same time."""

    output_field = BooleanField()

    def __init__(self, at: str, pk: str, than_at: Value, than_pk: Value) -> None:
        super().__init__(F(at), F(pk), than_at, than_pk)

    def as_sql(self, compiler: Any, connection: Any, *_: Any, **options: Any) -> Any:
        compiled = [compiler.compile(each) for each in self.get_source_expressions()]
        at, pk, than_at, than_pk = (sql for sql, _ in compiled)
        params = tuple(param for _, params in compiled for param in params)
        return f"({at}, {pk}) < ({than_at}, {than_pk})", params
