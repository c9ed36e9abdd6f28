"""GET /api/archive: which files there are."""

import gzip
from collections.abc import Sequence
from datetime import date
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from accounts.viewset import KeyedViewSet
from core.contract.answers import Answer
from core.contract.cursors import Cursors
from core.contract.errors import InvalidCursor, NotAllowed, SymbolNotFound
from core.contract.negotiation import takes_gzip
from core.contract.parameters import (
    LATEST_MS,
    ChoiceParameter,
    IntegerParameter,
    QuerySerializer,
    TextParameter,
    TimeParameter,
)
from core.contract.schema import describes
from core.plain_json import encode
from core.times import iso_date
from instruments.catalogue import catalogue

from .access import refuse_without_archive, sentence
from .days import KINDS, ArchiveFile, FinishedDays, Wanted, is_served
from .index import archive_index
from .samples import CANDLES, MANIFEST, TICKS
from .threads import in_archive_thread

DAY_MS = 86_400_000
# Of the longest list it leaves a fifth, in two milliseconds; of a short one more than there was.
GZIP_LEVEL, LEAST_PACKED = 5, 1000
WITHOUT = NotAllowed(sentence("free", ["Premium"]))
cursors = Cursors("archive")


class DayParameter(TimeParameter):
    """A UTC day, or a moment; as milliseconds since the epoch."""

    formats = ("date", "date-time")
    takes = f"a day such as 2026-11-20, {TimeParameter.takes}"

    def to_internal_value(self, data: str) -> int:
        try:
            # "20261120" would be a day as well, and is refused like everywhere.
            day = date.fromisoformat(data) if len(data) == 10 and not data.isdigit() else None
        except ValueError:
            day = None
        return super().to_internal_value(data if day is None else f"{day}T00:00:00Z")


class SymbolFilterSerializer(QuerySerializer):
    symbol = TextParameter(help_text="Only files of this instrument; manifests belong to none.")


class ArchiveQuerySerializer(QuerySerializer):
    kind = ChoiceParameter(KINDS, help_text="Only files of this kind.")
    start = DayParameter(help_text="The first day, such as 2026-11-20, or a time within it.")
    end = DayParameter(
        help_text="Only days that begin before this day, which is itself excluded, or before this time."
    )
    limit = IntegerParameter(default=100, max_value=500, help_text="Maximum number of files.")
    cursor = TextParameter(
        help_text="`next` of the previous page, with the parameters of its request; only `limit` may differ."
    )


class ArchiveList(msgspec.Struct):
    component: ClassVar[str] = "ArchiveList"

    items: Annotated[Sequence[ArchiveFile], Meta(description="By day, then by path.")]
    count: Annotated[int, Meta(ge=0, description="Files in this response.")]
    next: Annotated[str | None, Meta(description="The cursor of the next page; null on the last page.")]


class ArchiveViewSet(KeyedViewSet):
    @describes(
        "listArchive",
        ArchiveList,
        "The files of the archive: ticks and candles by day",
        tag="Archive",
        examples={"A day of one instrument": ArchiveList([CANDLES, MANIFEST, TICKS], 3, None)},
        details="Parquet files (zstd) of finished UTC days, one for each instrument: accepted ticks, and "
        "one-minute candles. The manifest of a day names them with their SHA-256, and where the ledger "
        "of signals ended. A day is available once its manifest is, soon after midnight; the current day "
        "is not.",
        query=[SymbolFilterSerializer, ArchiveQuerySerializer],
        refusals=[
            WITHOUT,
            InvalidCursor(field="cursor"),
            SymbolNotFound("There is no such symbol. Did you mean EURUSD?", field="symbol"),
        ],
    )
    async def list(self) -> Answer:
        await refuse_without_archive(self.caller)
        days = await archive_index.current()
        symbol = symbol_of(self.parameters(SymbolFilterSerializer)["symbol"], days)
        asked = self.parameters(ArchiveQuerySerializer)
        wanted = wanted_of(symbol, asked)
        return await in_archive_thread(page, days, wanted, asked["limit"], packs=takes_gzip(self.scope))


def wanted_of(symbol: str | None, asked: dict[str, Any]) -> Wanted:
    wanted = Wanted(asked["kind"], symbol)
    if asked["start"] is not None:
        wanted = wanted._replace(first=iso_date(asked["start"]))
    if asked["end"] is not None:
        # A day that has begun before it is listed; the last of all has none after it.
        wanted = wanted._replace(end=iso_date(min(asked["end"] + DAY_MS - 1, LATEST_MS)))
    if asked["cursor"] is not None:
        day, path = cursors.open(asked["cursor"], of_walk(wanted))
        wanted = wanted._replace(after=(day, path))
    return wanted


def of_walk(wanted: Wanted) -> tuple[Any, ...]:
    """What all pages of a walk have in common."""
    return wanted[:-1]


def symbol_of(text: str | None, days: FinishedDays) -> str | None:
    """Also one that is no instrument any more, as long as there are files of it."""
    if text is None or (text.isascii() and days.has(text.upper())):
        return text and text.upper()
    return catalogue.get_any(text).symbol


def page(days: FinishedDays, wanted: Wanted, limit: int, *, packs: bool) -> Answer:
    withheld = catalogue.withheld
    found = days.page(wanted, limit, lambda kept: is_served(kept, withheld))
    items, following = found[:limit], None
    if len(found) > limit:
        following = cursors.seal(of_walk(wanted), (items[-1].day, items[-1].path))
    body, headers = encode(ArchiveList(items, len(items), following)), {"Vary": "Accept-Encoding"}
    if packs and len(body) >= LEAST_PACKED:
        return Answer(gzip.compress(body, GZIP_LEVEL, mtime=0), {**headers, "Content-Encoding": "gzip"})
    return Answer(body, headers)
