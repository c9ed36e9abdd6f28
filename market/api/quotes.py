"""GET /api/quotes, the quotes of many instruments at once, and the order flow of one: both from memory."""

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, NamedTuple

import msgspec
from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace
from rest_framework.request import Request

from core import clock
from core.contract.answers import Answer
from core.contract.errors import InvalidCursor, InvalidParameter, ParameterOutOfRange, SymbolNotFound
from core.contract.parameters import (
    IntegerParameter,
    QuerySerializer,
    SymbolListParameter,
    TextParameter,
    TimeParameter,
    check_span,
    describes,
)
from core.contract.ranges import Cursors
from core.plain_json import encode
from core.struct_schemas import Moment, Symbol, openapi
from core.threads import in_thread_promptly
from core.times import iso_s
from core.viewset import ApiViewSet
from instruments.catalogue import catalogue
from instruments.facts import InstrumentFacts
from market import runtime
from market.prices.order_flow import MinuteFlow
from market.store import present_kind, read_flows
from market.streams.protocol.subscriptions import upper

from .history import NEXT_SAMPLE, refuse_another_kind
from .prices import QUOTED, SymbolQuote

MOST = 200
STATES = ("open", "closed", "stale")
TOO_MANY = (
    f"symbols may name up to {MOST} instruments, each counted once. Ask for the others in another request: "
    "each costs one, however many it names."
)
NAME_SOME = (
    "symbols is needed here: {number} instruments are offered, and one answer holds up to "
    f"{MOST} of them. GET /api/symbols lists them."
)


class QuotesQuerySerializer(QuerySerializer):
    symbols = SymbolListParameter(
        help_text=f"Up to {MOST} instrument codes, in upper or lower case, separated by commas; spaces "
        "around them are ignored. A repeated symbol is counted and returned once. Without this parameter, "
        f"all instruments on offer are returned; if there are more than {MOST}, it is required."
    )


class ListedQuote(SymbolQuote, kw_only=True):
    component: ClassVar[str] = "ListedQuote"

    state: Annotated[str, openapi(enum=STATES, description="The current state of its market.")]
    age_ms: Annotated[int, Meta(ge=0, description="Milliseconds since the quote's own time.")]


class RejectedSymbol(msgspec.Struct):
    symbol: Annotated[str, Meta(description="The symbol as requested, without spaces around it.")]
    code: Annotated[
        str,
        Meta(
            description="`symbol_not_found`: there is no such instrument. `quote_unavailable`: it has not "
            "been quoted yet. More codes may be added."
        ),
    ]


class QuoteList(msgspec.Struct):
    items: Annotated[Sequence[ListedQuote], Meta(description="In the order requested.")]
    count: Annotated[int, Meta(ge=0, description="Quotes in this response.")]
    rejected: Annotated[Sequence[RejectedSymbol], Meta(description="Symbols without a quote.")]


EURUSD = ListedQuote("EURUSD", *QUOTED, state="open", age_ms=262)


class QuotesViewSet(ApiViewSet):
    @describes(
        "listQuotes",
        QuoteList,
        "The current quotes of many instruments",
        examples={
            "One of three": QuoteList(
                [EURUSD],
                1,
                [RejectedSymbol("XAUUSD", "quote_unavailable"), RejectedSymbol("NOPE", "symbol_not_found")],
            )
        },
        tag="Market",
        details="For polling many instruments at once; it counts as one request, however many it names. "
        "Quotes are returned in the order requested, each once, even if named repeatedly. On a closed or "
        "stale "
        "market, the last known quote is returned with its own time; see `state` and `age_ms`. A "
        "symbol without a quote is listed in `rejected`, and the others are returned. A name that cannot be "
        "a symbol at all, such as `EUR/USD`, is an error of the whole request.",
        query=[QuotesQuerySerializer],
        refusals=[ParameterOutOfRange(TOO_MANY, field="symbols", max=MOST)],
    )
    def list(self, request: Request) -> Answer:
        asked = self.parameters(QuotesQuerySerializer)["symbols"]
        return Answer(quotes_of(offered() if asked is None else named(asked)))


def offered() -> dict[str, InstrumentFacts | None]:
    every = catalogue.offered()
    if len(every) > MOST:
        raise InvalidParameter(NAME_SOME.format(number=len(every)), field="symbols", max=MOST)
    return {facts.symbol: facts for facts in every}


def named(symbols: Sequence[str]) -> dict[str, InstrumentFacts | None]:
    """What is offered under each, by the symbol as it was first asked for."""
    first: dict[str, str] = {}
    for symbol in symbols:
        first.setdefault(upper(symbol), symbol)
    if len(first) > MOST:
        raise ParameterOutOfRange(TOO_MANY, field="symbols", max=MOST)
    return {symbol: catalogue.find_offered(known_as) for known_as, symbol in first.items()}


def quotes_of(asked: Mapping[str, InstrumentFacts | None]) -> bytes:
    now_ms = clock.now_ms()
    items: list[bytes] = []
    rejected: list[RejectedSymbol] = []
    for symbol, facts in asked.items():
        if facts is None:
            rejected.append(RejectedSymbol(symbol, "symbol_not_found"))
            continue
        quote, state = runtime.prices.quoted(facts, now_ms)
        if quote is None:
            rejected.append(RejectedSymbol(symbol, "quote_unavailable"))
            continue
        aged = quote.whole[:-1], state.encode(), quote.age_ms(now_ms)
        items.append(b'%s,"state":"%s","age_ms":%d}' % aged)
    return b'{"items":[%s],"count":%d,"rejected":%s}' % (b",".join(items), len(items), encode(rejected))


# GET /api/orderflow/{symbol}: the order flow of closed minutes, as the engine summed it up.
MOST_ROWS = 500


class OrderFlowQuerySerializer(QuerySerializer):
    start = TimeParameter(
        help_text="Only minutes that opened at this time or later, as a UTC day, an ISO 8601 time with its "
        "zone or milliseconds since the epoch. By default, the newest."
    )
    end = TimeParameter(help_text="Only minutes that opened before this time, in the same format.")
    limit = IntegerParameter(default=100, max_value=MOST_ROWS, help_text="Maximum number of minutes.")
    cursor = TextParameter(
        help_text="`next` of the previous page, with the parameters of its request; only `limit` may differ."
    )


class FlowBucket(msgspec.Struct):
    component: ClassVar[str] = "OrderFlowMinute"

    time: Annotated[Moment, Meta(description="When the minute opened.")]
    bid_volume: Annotated[float, Meta(ge=0, description="The volume that takers sold.")]
    ask_volume: Annotated[float, Meta(ge=0, description="The volume that takers bought.")]
    delta: Annotated[float, Meta(description="ask_volume − bid_volume.")]
    cumulative_delta: Annotated[float, Meta(description="The running sum of delta since 00:00 UTC.")]
    absorptions: Annotated[
        int,
        Meta(
            ge=0,
            description="How many absorptions were found in the windows of this minute. One whose `time` is "
            "the end of the minute belongs to this minute, not to the next.",
        ),
    ]


class FlowList(msgspec.Struct):
    component: ClassVar[str] = "OrderFlow"

    symbol: Symbol
    items: Annotated[Sequence[FlowBucket], Meta(description="Oldest first.")]
    count: Annotated[int, Meta(ge=0, description="Minutes in this response.")]
    next: Annotated[
        str | None | UnsetType,
        Meta(description="Only with `start`: the cursor of the next page; null if there is none."),
    ] = UNSET


TWO_MINUTES = FlowList(
    "BTCUSD",
    [
        FlowBucket("2026-11-20T14:02:00Z", 1.204, 3.5, 2.296, -14.75, 1),
        FlowBucket("2026-11-20T14:03:00Z", 0, 0, 0, -14.75, 0),
    ],
    2,
)


class OrderFlowViewSet(ApiViewSet):
    lookup_field, lookup_value_regex = "symbol", "[^/]+"

    @describes(
        "getOrderFlow",
        FlowList,
        "Order flow of one instrument, minute by minute",
        examples={
            "Two minutes": TWO_MINUTES,
            "A page of a range": replace(TWO_MINUTES, next=NEXT_SAMPLE),
        },
        tag="Market",
        details="The sums of what `/ws/orderflow` sends, oldest first: with `start`, the first of the range, "
        "and `next`, the cursor of the next page; without it, the newest. A minute is available within about "
        "a second of its close, and then no longer changes. Only minutes that were made from ticks have "
        "order flow: one that was imported, or read from a venue's history after a gap, is left out. "
        "Where the side is estimated, ticks before the first move of the mid count towards neither side: "
        "in the minute in which an instrument's order flow begins, the two volumes may add up to less "
        "than the candle's volume.",
        query=[OrderFlowQuerySerializer],
        refusals=[
            SymbolNotFound("There is no such symbol. Did you mean EURUSD?", field="symbol"),
            InvalidCursor(field="cursor"),
        ],
    )
    async def retrieve(self, request: Request, symbol: str) -> Answer:
        facts = catalogue.get(symbol)
        wanted = self.parameters(OrderFlowQuerySerializer)
        limit, start_ms, end_ms = wanted["limit"], wanted["start"], wanted["end"]
        check_span(start_ms, end_ms)
        asked = facts.symbol, start_ms, end_ms
        # Without a start no cursor is issued, and so none is accepted.
        place = None if wanted["cursor"] is None else FlowPosition(*cursors.open(wanted["cursor"], asked))
        if start_ms is None:
            return Answer(await in_thread_promptly(read, facts, limit, end_ms))
        return Answer(await in_thread_promptly(read_page, facts, limit, asked, place))


cursors = Cursors("orderflow")


class FlowPosition(NamedTuple):
    """How far a walk has come."""

    after_ms: int
    simulated: bool


def read(facts: InstrumentFacts, limit: int, end_ms: int | None) -> FlowList:
    return flow_list(facts, read_flows(facts.id, limit, end_ms=end_ms, withheld=catalogue.withheld))


def read_page(
    facts: InstrumentFacts, limit: int, asked: tuple[str, int, int | None], place: FlowPosition | None
) -> FlowList:
    _, start_ms, end_ms = asked
    simulated = present_kind(facts.id)
    if place is not None:
        refuse_another_kind(facts, place.simulated, simulated)
        start_ms = place.after_ms + 1
    minutes = read_flows(facts.id, limit + 1, start_ms=start_ms, end_ms=end_ms, withheld=catalogue.withheld)
    page, following = minutes[:limit], None
    if len(minutes) > limit:
        following = cursors.seal(asked, FlowPosition(page[-1].opened_ms, simulated))
    return replace(flow_list(facts, page), next=following)


def flow_list(facts: InstrumentFacts, minutes: Sequence[MinuteFlow]) -> FlowList:
    return FlowList(facts.symbol, [bucket_of(minute) for minute in minutes], len(minutes))


def bucket_of(minute: MinuteFlow) -> FlowBucket:
    return FlowBucket(
        iso_s(minute.opened_ms),
        minute.bid_volume,
        minute.ask_volume,
        minute.delta,
        minute.cumulative_delta,
        minute.absorptions,
    )
