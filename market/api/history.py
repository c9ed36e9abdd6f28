"""GET /api/market/{symbol}/history: every closed candle that is stored, page by page, in each of its
forms."""

import asyncio
import zlib
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from importlib.util import find_spec
from typing import Annotated, Any, ClassVar, NamedTuple, Self, TypeVar
from weakref import WeakKeyDictionary

import msgspec
from msgspec import Meta
from rest_framework.decorators import action
from rest_framework.request import Request

from accounts.authentication import caller_of
from core import clock
from core.contract.answers import JSON, Answer
from core.contract.errors import InvalidCursor, InvalidTimeframe, NotAcceptable, NotAllowed, SymbolNotFound
from core.contract.negotiation import OpenBodies, OpenBody, chosen_type, none_of, takes_gzip
from core.contract.parameters import (
    ChoiceParameter,
    IntegerParameter,
    QuerySerializer,
    TextParameter,
    TimeParameter,
    WordListParameter,
    check_span,
    describes,
)
from core.contract.ranges import Cursors
from core.database import TRANSIENT
from core.plain_json import encode
from core.struct_schemas import Symbol
from core.threads import in_thread_promptly
from core.viewset import ApiViewSet
from instruments.catalogue import catalogue
from instruments.facts import InstrumentFacts
from market import runtime
from market.prices.candles import TIMEFRAMES
from market.prices.history import CSV_FIELDS, KEPT, OhlcvCandle, csv_line, encode_candles, wire_candle
from market.store import present_kind
from market.store.candle_rows import CandlePart, PageBounds, StoredSeries, find_bounds, read_parts

from .prices import BASIS, EXPAND_BASIS, Candles, CandleTimeframe

# The forms of a page of candles: JSON, CSV, and Arrow's stream where pyarrow is installed. Each is made
# part by part.
CSV = "text/csv"
ARROW = "application/vnd.apache.arrow.stream"
NO_ARROW = (
    "This service cannot make Arrow: pyarrow is not installed here. Ask for application/json or text/csv, or "
    "have its operator install it (the extra `archive`)."
)

BASIS_FIELDS = "basis,partial"

# More would take twice as long for a twentieth less.
GZIP_LEVEL = 4
GZIP = 16 + zlib.MAX_WBITS

# The end of Arrow's stream: a message of no length.
ARROW_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"


class About(NamedTuple):
    """What a page says besides its candles."""

    symbol: str
    timeframe: str
    next: str | None
    has_basis: bool = False

    @property
    def fields(self) -> str:
        return f"{CSV_FIELDS},{BASIS_FIELDS}" if self.has_basis else CSV_FIELDS


class Form(NamedTuple):
    media_type: str
    make: Callable[[About, Iterable[CandlePart]], Iterator[bytes]]


def json_parts(about: About, parts: Iterable[CandlePart]) -> Iterator[bytes]:
    lead, count = f'{{"symbol":"{about.symbol}","timeframe":"{about.timeframe}","ohlcv":['.encode(), 0
    for part in parts:
        count += len(part.candles)
        text = lead + encode_candles(part.candles)
        if part.is_last:
            yield text + json_end(about, count)
            return
        yield text
        lead = b","
    yield (b"" if count else lead) + json_end(about, count)


def json_end(about: About, count: int) -> bytes:
    return b'],"count":%d,"next":%b}' % (count, encode(about.next))


def csv_parts(about: About, parts: Iterable[CandlePart]) -> Iterator[bytes]:
    yield f"{about.fields}\n".encode()
    for part in parts:
        yield "".join(map(csv_line, part.candles)).encode()


def arrow_parts(about: About, parts: Iterable[CandlePart]) -> Iterator[bytes]:
    # Here and not above: it is an extra, and takes forty megabytes of those who never ask for it.
    import pyarrow

    names = about.fields.split(",")
    types = {name: pyarrow.float64() for name in names} | {"time": pyarrow.timestamp("ms", "UTC")}
    if about.has_basis:
        types |= {"basis": pyarrow.string(), "partial": pyarrow.bool_()}
    metadata = {"symbol": about.symbol, "timeframe": about.timeframe}
    schema = pyarrow.schema(types.items(), metadata=metadata)
    yield schema.serialize().to_pybytes()
    for part in parts:
        columns = [[getattr(candle, name) for candle in part.candles] for name in names]
        columns[0] = pyarrow.array(columns[0]).cast(types["time"])
        yield pyarrow.record_batch(columns, schema=schema).serialize().to_pybytes()
    yield ARROW_END


FORMS = {
    JSON: Form(JSON, json_parts),
    CSV: Form("text/csv; charset=utf-8", csv_parts),
    ARROW: Form(ARROW, arrow_parts),
}


def has_arrow() -> bool:
    return find_spec("pyarrow") is not None


F = TypeVar("F")


def asked_form(scope: dict[str, Any], forms: Mapping[str, F]) -> F:
    name = chosen_type(scope, tuple(forms))
    if name == ARROW and not has_arrow():
        try:
            name = chosen_type(scope, (JSON, CSV))
        except NotAcceptable as refusal:
            raise NotAcceptable(NO_ARROW, field="Accept", allowed=refusal.allowed) from None
    return forms[name]


def gzipped(parts: Iterable[bytes]) -> Iterator[bytes]:
    compressing = zlib.compressobj(GZIP_LEVEL, wbits=GZIP)
    for part in parts:
        yield compressing.compress(part)
    yield compressing.flush()


# Pages of history on their way: how many there may be, and how they are read beside the event loop.
MOST_PAGES = 64
MOST_OF_AN_ACCOUNT = 16
"""Pages that are sent at the same time by a process; of one that is read slowly, a part is in memory."""
READ_AT_ONCE = 1
"""Parts that are read at the same time. More would take Python's lock from the event loop, and a part is read
faster than it is sent."""


open_pages = OpenBodies(
    MOST_OF_AN_ACCOUNT,
    MOST_PAGES,
    f"An account may read {MOST_OF_AN_ACCOUNT} pages of candles or ticks at a time. Read one to its end.",
    retry_after=1,
)
_reading: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


async def sent(page: OpenBody, parts: Iterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Each part is made when the one before has been taken: a client that reads slowly holds back nothing but
    its own page."""
    turn = _reading.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(READ_AT_ONCE))
    try:
        while True:
            async with turn:
                part = await in_thread_promptly(next, parts, None)
            if part is None:
                return
            if part:
                yield part
    finally:
        open_pages.leave(page)


def page_answer(
    scope: dict[str, Any], page: OpenBody, media_type: str, parts: Iterator[bytes], following: str | None
) -> Answer:
    """`following` is the cursor of the next page, for which only JSON has room."""
    headers = {"Vary": "Accept, Accept-Encoding"}
    if following is not None and media_type != JSON:
        headers["X-Next-Cursor"] = following
    if takes_gzip(scope):
        parts, headers["Content-Encoding"] = gzipped(parts), "gzip"
    return Answer(b"", headers, media_type=media_type, streamed=sent(page, parts))


LONGEST_PAGE = 10_000
MOST_OF_OUR_PAGES = 1_000
"""Bars or ticks of one walk, for the keys of our own pages."""
OUR_PAGES = (
    f"The key of a page can read up to {MOST_OF_OUR_PAGES:,} bars or ticks of the past. An API key, issued "
    "in the settings panel, can read all of it."
)
OTHER_KIND = (
    "The prices of {symbol} have changed between simulated and real since this cursor was returned, and no "
    "walk mixes the two. Start again without a cursor."
)
cursors = Cursors("history")


class HistoryQuerySerializer(QuerySerializer):
    timeframe = ChoiceParameter(
        list(TIMEFRAMES),
        default="1m",
        refusal=InvalidTimeframe,
        help_text="The interval of a candle. The default differs from that of `GET /api/market/{symbol}`, "
        "which is 1h.",
    )
    start = TimeParameter(
        help_text="The first time to include, as a UTC day, an ISO 8601 time with its zone or milliseconds "
        "since the epoch. By default, the first stored candle."
    )
    end = TimeParameter(help_text="The end, which is excluded, in the same format. By default, now.")
    limit = IntegerParameter(default=1_000, max_value=LONGEST_PAGE, help_text="Number of candles.")
    cursor = TextParameter(
        help_text="`next` of the previous page, with the parameters of its request; only `limit`, `expand` "
        "and the format may differ."
    )
    expand = WordListParameter([BASIS], help_text=EXPAND_BASIS)


class SymbolHistory(msgspec.Struct):
    component: ClassVar[str] = "History"

    symbol: Symbol
    timeframe: CandleTimeframe
    ohlcv: Candles
    count: Annotated[int, Meta(ge=0, description="Candles in this page.")]
    next: Annotated[str | None, Meta(description="The cursor of the next page; null if there is none.")]


NEXT_SAMPLE = (
    "WyI0Y2Q3ZjQ1YzA4ZTI0YjFmIixbMTc5NTE4MzIwMDAwMCwxNzk1MTgzNDQwMDAwLGZhbHNlLDJdXQ.3kq0uXJ1mR5xZz2bV7c"
)
MINUTES = SymbolHistory(
    "EURUSD",
    "1m",
    [
        OhlcvCandle("2026-11-20T13:59:00Z", 1.08415, 1.08422, 1.08414, 1.08417, 71),
        OhlcvCandle("2026-11-20T14:00:00Z", 1.08417, 1.0842, 1.08402, 1.0841, 63),
    ],
    2,
    NEXT_SAMPLE,
)


class WalkPosition(NamedTuple):
    """How far a walk has come, as its cursor keeps it."""

    after_ms: int
    end_ms: int
    """Without a requested end, the moment of the first page: so every walk ends."""
    simulated: bool | None
    """None before the first page."""
    given: int
    """Bars, up to here."""


class OpenBar(NamedTuple):
    """The candle that is forming, which `closed_only` leaves out. It is stored if it was closed early, by a
    change of source or by a calendar, and then went on."""

    simulated: bool | None
    """The kind of the series that this process knows; None if it has loaded none."""
    opened_ms: int | None

    @classmethod
    def of(cls, facts: InstrumentFacts, timeframe: str) -> Self:
        history = runtime.prices.candles(facts)
        forming = history.forming_row(timeframe)
        return cls(history.simulated, None if forming is None else forming.opened_ms)

    def end_ms(self, simulated: bool, timeframe: str, end_ms: int) -> int:
        if self.simulated not in (None, simulated):
            # The series is changing, and this process does not know yet what of the next one is forming.
            return min(end_ms, clock.now_ms() - TIMEFRAMES[timeframe] + 1)
        return end_ms if self.opened_ms is None else min(end_ms, self.opened_ms)


class HistoryViewSet(ApiViewSet):
    lookup_field, lookup_value_regex = "symbol", "[^/]+"

    @action(detail=True)  # type: ignore[type-var]
    @describes(
        "getHistory",
        SymbolHistory,
        "Every closed candle of one instrument",
        examples={"The last minutes of a page": MINUTES},
        tag="Market",
        details="All stored candles, oldest first, in pages of up to 10,000 candles. `next` is the cursor of "
        "the next page, to be sent with the same parameters (only `limit`, `expand` and the format may "
        "differ). It is null on the last page. A cursor remains valid when the service is restarted. No "
        "candle is left out or repeated, even while candles close; a candle is available within about a "
        "second of its close. "
        "`Accept` chooses "
        "JSON, `text/csv` or `application/vnd.apache.arrow.stream`; in the last two, the cursor is in "
        "the header `X-Next-Cursor`. Responses are compressed with gzip for clients that accept it.",
        query=[HistoryQuerySerializer],
        refusals=[
            SymbolNotFound("There is no such symbol. Did you mean EURUSD?", field="symbol"),
            InvalidCursor(field="cursor"),
            NotAllowed(OUR_PAGES, field="limit", max=MOST_OF_OUR_PAGES),
            none_of((JSON, CSV, ARROW)),
        ],
        headers=["X-Next-Cursor"],
        other_forms={
            CSV: "The same fields with a header row, as `export_candles` writes them.",
            ARROW: "Batches of several hundred candles: `time` in milliseconds of UTC, the rest as floats.",
        },
    )
    async def history(self, request: Request, symbol: str) -> Answer:
        facts = catalogue.get(symbol)
        wanted = self.parameters(HistoryQuerySerializer)
        asked = facts.symbol, wanted["timeframe"], wanted["start"], wanted["end"]
        cursor = wanted["cursor"]
        place = begin(*asked[2:]) if cursor is None else WalkPosition(*cursors.open(cursor, asked))
        if caller_of(request).is_page:
            check_page_of_ours(place.given + wanted["limit"], wanted)
        form = asked_form(self.scope, FORMS)
        page = open_pages.enter(caller_of(request).counted_under)
        try:
            found = await find(facts, wanted, place)
        except BaseException:
            open_pages.leave(page)
            raise
        following, bounds = None, found.bounds
        if bounds.last_ms is not None and bounds.has_more:
            given = place.given + wanted["limit"]
            following = cursors.seal(
                asked, WalkPosition(bounds.last_ms, place.end_ms, found.simulated, given)
            )
        about = About(facts.symbol, wanted["timeframe"], following, bool(wanted["expand"]))
        parts = form.make(about, found.candles)
        return page_answer(self.scope, page, form.media_type, parts, following)


def check_page_of_ours(up_to: int, wanted: dict[str, Any]) -> None:
    if up_to > MOST_OF_OUR_PAGES:
        if wanted["limit"] > MOST_OF_OUR_PAGES:
            raise NotAllowed(OUR_PAGES, field="limit", max=MOST_OF_OUR_PAGES)
        raise NotAllowed(OUR_PAGES, field="cursor")


def begin(start_ms: int | None, end_ms: int | None) -> WalkPosition:
    check_span(start_ms, end_ms)
    return WalkPosition(
        after_ms=(start_ms or 0) - 1,
        end_ms=clock.now_ms() if end_ms is None else end_ms,
        simulated=None,
        given=0,
    )


class FoundPage(NamedTuple):
    simulated: bool
    bounds: PageBounds
    candles: Iterator[CandlePart]


async def find(facts: InstrumentFacts, wanted: dict[str, Any], place: WalkPosition) -> FoundPage:
    open_bar = OpenBar.of(facts, wanted["timeframe"])
    try:
        return await in_thread_promptly(find_stored, facts, wanted, place, open_bar)
    except TRANSIENT:
        if (found := find_known(facts, wanted, place)) is None:
            raise
        return found


def find_stored(
    facts: InstrumentFacts, wanted: dict[str, Any], place: WalkPosition, open_bar: OpenBar
) -> FoundPage:
    simulated, timeframe = present_kind(facts.id), wanted["timeframe"]
    refuse_another_kind(facts, place.simulated, simulated)
    series = StoredSeries(facts.id, facts.digits, timeframe, simulated, catalogue.withheld)
    end_ms = open_bar.end_ms(simulated, timeframe, place.end_ms)
    bounds = find_bounds(series, place.after_ms, end_ms, wanted["limit"])
    last_ms = place.after_ms if bounds.last_ms is None else bounds.last_ms
    parts = read_parts(series, place.after_ms, last_ms, has_basis=bool(wanted["expand"]))
    return FoundPage(simulated, bounds, parts)


def find_known(facts: InstrumentFacts, wanted: dict[str, Any], place: WalkPosition) -> FoundPage | None:
    """The same of what this process has in memory: the last candles, if they reach back far enough. It does
    not know what they are made of."""
    history = runtime.prices.candles(facts)
    rows = history.rows(wanted["timeframe"], KEPT, closed_only=True)
    if wanted["expand"] or history.simulated is None or not rows or place.after_ms + 1 < rows[0].opened_ms:
        return None
    refuse_another_kind(facts, place.simulated, history.simulated)
    rest = [row for row in rows if place.after_ms < row.opened_ms < place.end_ms]
    page = rest[: wanted["limit"]]
    bounds = PageBounds(page[-1].opened_ms if page else None, len(rest) > len(page))
    part = CandlePart([wire_candle(row) for row in page], is_last=True)
    return FoundPage(history.simulated, bounds, iter([part] if page else []))


def refuse_another_kind(facts: InstrumentFacts, before: bool | None, simulated: bool) -> None:
    if before not in (None, simulated):
        raise InvalidCursor(OTHER_KIND.format(symbol=facts.symbol), field="cursor")
