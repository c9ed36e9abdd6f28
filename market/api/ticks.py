"""GET /api/market/{symbol}/ticks: the accepted ticks of the last day, page by page, and older ones from the
archive."""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, ClassVar, NamedTuple

import msgspec
from msgspec import Meta
from rest_framework.decorators import action
from rest_framework.request import Request

from accounts.authentication import caller_of
from accounts.keys import Caller
from core import clock
from core.contract.answers import JSON, Answer
from core.contract.errors import InvalidCursor, NotAllowed, SymbolNotFound, TicksUnavailable
from core.contract.negotiation import none_of
from core.contract.parameters import (
    IntegerParameter,
    QuerySerializer,
    TextParameter,
    TimeParameter,
    check_span,
    describes,
)
from core.contract.ranges import Cursors
from core.deadlines import patient
from core.plain_json import encode, number
from core.struct_schemas import Moment, Symbol
from core.threads import in_thread_promptly
from core.times import iso_ms
from core.viewset import ApiViewSet
from instruments.catalogue import catalogue, may_be_passed_on
from instruments.facts import InstrumentFacts, is_simulated
from market import runtime
from market.engine.recent_ticks import NotHere, RecentTicks, recent_ticks_folder
from market.engine.tick_pages import BODY, FoundTicks, KeptTick, TickPlace, WantedTicks, unpack_ticks
from market.streams.market_streams import prices

from .history import (
    ARROW,
    ARROW_END,
    CSV,
    LONGEST_PAGE,
    MOST_OF_OUR_PAGES,
    OTHER_KIND,
    OUR_PAGES,
    asked_form,
    check_page_of_ours,
    open_pages,
    page_answer,
)

PART = 1_000
"""Ticks of a page that are encoded at once."""


class TickItem(msgspec.Struct):
    component: ClassVar[str] = "TickItem"

    timestamp: Annotated[Moment, Meta(description="The source's time of the tick, with milliseconds.")]
    bid: Annotated[float, Meta(description="The price at which you can sell.")]
    ask: Annotated[float, Meta(description="The price at which you can buy.")]
    spread: Annotated[float, Meta(description="`ask` − `bid`, in price units.")]
    volume: Annotated[float, Meta(description="The volume since the previous tick.")]
    seq: Annotated[int, Meta(ge=1, description="The tick's number, as on `/ws/market`.")]


class SymbolTicks(msgspec.Struct):
    component: ClassVar[str] = "Ticks"

    symbol: Symbol
    epoch: Annotated[
        str,
        Meta(description="The numbering that `seq` belongs to, of all items; without items the present one."),
    ]
    items: Annotated[Sequence[TickItem], Meta(description="Oldest first.")]
    count: Annotated[int, Meta(ge=0, description="Ticks in this page.")]
    next: Annotated[str | None, Meta(description="The cursor of the next page; null if there is none.")]


# The forms of a page, as those of history.
class TickPage(NamedTuple):
    facts: InstrumentFacts
    epoch: str
    bodies: bytes
    next: str | None

    def parts(self) -> Iterator[list[KeptTick]]:
        for start in range(0, len(self.bodies), PART * BODY.size):
            yield [*unpack_ticks(self.bodies[start : start + PART * BODY.size])]

    def items(self) -> Iterator[list[TickItem]]:
        for part in self.parts():
            yield [item_of(tick, self.facts.digits) for tick in part]


def item_of(tick: KeptTick, digits: int) -> TickItem:
    spread = round(tick.ask - tick.bid, digits)
    return TickItem(iso_ms(tick.time_ms), tick.bid, tick.ask, spread, tick.volume, tick.seq)


def json_parts(page: TickPage) -> Iterator[bytes]:
    lead = f'{{"symbol":"{page.facts.symbol}","epoch":"{page.epoch}","items":['.encode()
    for part in page.items():
        yield lead + encode(part)[1:-1]
        lead = b","
    end = b'],"count":%d,"next":%b}' % (len(page.bodies) // BODY.size, encode(page.next))
    yield end if page.bodies else lead + end


def csv_parts(page: TickPage) -> Iterator[bytes]:
    yield f"{','.join(TickItem.__struct_fields__)}\n".encode()
    for part in page.items():
        yield "".join(map(csv_line, part)).encode()


def csv_line(item: TickItem) -> str:
    values = ",".join(map(number, (item.bid, item.ask, item.spread, item.volume)))
    return f"{item.timestamp},{values},{item.seq}\n"


def arrow_parts(page: TickPage) -> Iterator[bytes]:
    # Here and not above, as in history: it is an extra.
    import pyarrow

    floats = dict.fromkeys(("bid", "ask", "spread", "volume"), pyarrow.float64())
    types = {"timestamp": pyarrow.timestamp("ms", "UTC"), **floats, "seq": pyarrow.int64()}
    schema = pyarrow.schema(types.items(), metadata={"symbol": page.facts.symbol, "epoch": page.epoch})
    yield schema.serialize().to_pybytes()
    for ticks in page.parts():
        times = pyarrow.array([tick.time_ms for tick in ticks]).cast(types["timestamp"])
        spreads = [round(tick.ask - tick.bid, page.facts.digits) for tick in ticks]
        _, _, bids, asks, volumes = zip(*ticks, strict=True)
        columns = [times, bids, asks, spreads, volumes, [tick.seq for tick in ticks]]
        yield pyarrow.record_batch(columns, schema=schema).serialize().to_pybytes()
    yield ARROW_END


class Form(NamedTuple):
    media_type: str
    make: Callable[[TickPage], Iterator[bytes]]


FORMS = {
    JSON: Form(JSON, json_parts),
    CSV: Form("text/csv; charset=utf-8", csv_parts),
    ARROW: Form(ARROW, arrow_parts),
}

# Where a page is found.
CATCH_UP_S, LOOK_S = patient(1.0), 0.02
"""Ticks are in the files within a tenth of a second. A page that lacks what frames said waits for them."""
RETRY_S = 5
cursors = Cursors("ticks")


class WalkPosition(NamedTuple):
    """How far a walk has come, as its cursor keeps it."""

    after: TickPlace | None
    """None before the first page."""
    end_ms: int
    """Without a requested end, all that there is at the first page: so every walk ends."""
    simulated: bool
    given: int = 0
    """Ticks, up to here."""


def begin(facts: InstrumentFacts, start_ms: int | None, end_ms: int | None) -> WalkPosition:
    check_span(start_ms, end_ms)
    if end_ms is None:
        quote = runtime.quote(facts.symbol)
        # A source's clock may be ahead of ours.
        end_ms = max(clock.now_ms(), 0 if quote is None else quote.time_ms) + 1
    return WalkPosition(None, end_ms, present_kind(facts))


def reopened(facts: InstrumentFacts, cursor: str, asked: Sequence[Any]) -> WalkPosition:
    after, *rest = cursors.open(cursor, asked)
    place = WalkPosition(TickPlace(*after), *rest)
    if place.simulated != present_kind(facts):
        raise InvalidCursor(OTHER_KIND.format(symbol=facts.symbol), field="cursor")
    return place


def present_kind(facts: InstrumentFacts) -> bool:
    known = runtime.prices.candles(facts).simulated
    return is_simulated(runtime.feeds(facts)[0]) if known is None else known


async def find(facts: InstrumentFacts, wanted: WantedTicks, caller: Caller) -> FoundTicks:
    recent = await find_recent(wanted)
    from_ms = wanted.start_ms if wanted.after is None else wanted.after.time_ms
    may_reach_back = caller.allowances.archive and not caller.is_page and runtime.market.read_archived
    if may_reach_back and (recent.oldest is None or from_ms <= recent.oldest.time_ms):
        older = await may_reach_back(wanted, recent.oldest)
        if older.bodies:
            return older._replace(has_more=older.has_more or bool(recent.bodies))
    return recent


async def find_recent(wanted: WantedTicks) -> FoundTicks:
    """With all that frames of this process have said by now."""
    files, until_s = RecentTicks(recent_ticks_folder()), time.monotonic() + CATCH_UP_S
    head = prices.recent.head(wanted.symbol, clock.now_ms() - round(CATCH_UP_S * 1_000))
    while True:
        epoch, found = runtime.epoch(), None
        try:
            found = await in_thread_promptly(files.find, wanted, epoch)
        except NotHere:
            pass
        else:
            if not lacks(found, wanted, epoch, head):
                return found
        if time.monotonic() > until_s:
            if found is None:
                raise TicksUnavailable(retry_after=RETRY_S)
            return found
        await asyncio.sleep(LOOK_S)


def lacks(found: FoundTicks, wanted: WantedTicks, epoch: str, head: int) -> bool:
    """Whether frames up to this number were sent, and may belong to this page."""
    newest = found.newest
    if not head or found.has_more:
        return False
    if newest is None or newest.epoch != epoch:
        return True
    return newest.seq < head and newest.time_ms < wanted.end_ms


class TicksQuerySerializer(QuerySerializer):
    start = TimeParameter(
        help_text="The first time to include, as an ISO 8601 time with its zone or in milliseconds since the "
        "epoch. By default, the first tick that is kept."
    )
    end = TimeParameter(help_text="The end, which is excluded, in the same format. By default, now.")
    limit = IntegerParameter(default=1_000, max_value=LONGEST_PAGE, help_text="Number of ticks.")
    cursor = TextParameter(
        help_text="`next` of the previous page, with the parameters of its request; only `limit` and the "
        "format may differ."
    )


TICKS = SymbolTicks(
    "EURUSD",
    "5f0c2a9be114",
    [
        TickItem("2026-11-20T14:00:00.125Z", 1.08415, 1.08424, 0.00009, 1.0, 48_210),
        TickItem("2026-11-20T14:00:00.125Z", 1.08416, 1.08424, 0.00008, 1.0, 48_211),
    ],
    2,
    "WyI0Y2Q3ZjQ1YzA4ZTI0YjFmIixbWyI1ZjBjMmE5YmUxMTQiLDQ4MjExLDE3OTUxODMyMDAxMjVdXV0.3kq0uXJ1mR5xZz2bV7c",
)


class TicksViewSet(ApiViewSet):
    lookup_field, lookup_value_regex = "symbol", "[^/]+"

    @action(detail=True)  # type: ignore[type-var]
    @describes(
        "getTicks",
        SymbolTicks,
        "The accepted ticks of one instrument",
        examples={"Two ticks of one millisecond": TICKS},
        tag="Market",
        details="Accepted ticks, oldest first, with the numbers that they have on `/ws/market`: what a `gap` "
        "or `unrecovered` left out can be fetched here. At least the last 24 hours are kept; tiers that may "
        "read the archive also get its finished days, without a seam. A tick that a frame has shown is in "
        "the answer. Within an `epoch`, `seq` increases by one, so a missing tick is noticed. A page ends "
        "where the epoch changes, and `next` continues in the next epoch. `next` is to be sent with the same "
        "parameters (only `limit` and the format may differ), remains "
        "valid when the service is restarted, and loses and repeats no tick, even of one millisecond. "
        "`Accept` chooses JSON, `text/csv` or `application/vnd.apache.arrow.stream`; in the last two, the "
        "cursor is in the header `X-Next-Cursor`, and the epoch in `X-Epoch`. Responses are compressed with "
        "gzip for clients that accept it.",
        query=[TicksQuerySerializer],
        refusals=[
            SymbolNotFound("There is no such symbol. Did you mean EURUSD?", field="symbol"),
            InvalidCursor(field="cursor"),
            NotAllowed(OUR_PAGES, field="limit", max=MOST_OF_OUR_PAGES),
            none_of((JSON, CSV, ARROW)),
            TicksUnavailable(retry_after=RETRY_S),
        ],
        headers=["X-Next-Cursor", "X-Epoch"],
        other_forms={
            CSV: "The same fields with a header row.",
            ARROW: "Batches of 1,000 ticks: `timestamp` in milliseconds of UTC, `seq` as int64, the rest as "
            "floats.",
        },
    )
    async def ticks(self, request: Request, symbol: str) -> Answer:
        facts, caller = catalogue.get(symbol), caller_of(request)
        wanted = self.parameters(TicksQuerySerializer)
        asked, cursor = (facts.symbol, wanted["start"], wanted["end"]), wanted["cursor"]
        place = begin(facts, *asked[1:]) if cursor is None else reopened(facts, cursor, asked)
        given = place.given + wanted["limit"]
        if caller.is_page:
            check_page_of_ours(given, wanted)
        form = asked_form(self.scope, FORMS)

        def may_be_given(source: str) -> bool:
            return is_simulated(source) == place.simulated and may_be_passed_on((source,), catalogue.withheld)

        which = WantedTicks(
            facts.symbol, wanted["start"] or 0, place.end_ms, wanted["limit"], place.after, may_be_given
        )
        page = open_pages.enter(caller.counted_under)
        try:
            found = await find(facts, which, caller)
        except BaseException:
            open_pages.leave(page)
            raise
        following, epoch = None, found.epoch or runtime.epoch()
        if found.has_more:
            last = KeptTick._make(BODY.unpack_from(found.bodies, len(found.bodies) - BODY.size))
            after = TickPlace(found.epoch, last.seq, last.time_ms)
            following = cursors.seal(asked, place._replace(after=after, given=given))
        parts = form.make(TickPage(facts, epoch, found.bodies, following))
        answer = page_answer(self.scope, page, form.media_type, parts, following)
        answer.headers["X-Epoch"] = epoch
        return answer
