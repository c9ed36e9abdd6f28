"""GET /api/orderflow/{symbol}: the order flow of closed minutes, as the engine summed it up."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from accounts.viewset import KeyedViewSet
from core.contract.answers import Answer
from core.contract.errors import SymbolNotFound
from core.contract.parameters import IntegerParameter, QuerySerializer, TimeParameter, check_span
from core.contract.schema import describes
from core.plain_json import encode
from core.struct_schemas import Moment, Symbol
from core.threads import in_thread_promptly
from core.times import iso_s
from instruments.catalogue import catalogue
from instruments.facts import InstrumentFacts
from market.prices.order_flow import MinuteFlow
from market.store import read_flows

MOST = 500


class OrderFlowQuerySerializer(QuerySerializer):
    start = TimeParameter(
        help_text="Only minutes that opened at this time or later, as an ISO 8601 time with its zone or in "
        "milliseconds since the epoch. By default, the newest."
    )
    end = TimeParameter(help_text="Only minutes that opened before this time, in the same format.")
    limit = IntegerParameter(default=100, max_value=MOST, help_text="Maximum number of minutes.")


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


TWO_MINUTES = FlowList(
    "BTCUSD",
    [
        FlowBucket("2026-11-20T14:02:00Z", 1.204, 3.5, 2.296, -14.75, 1),
        FlowBucket("2026-11-20T14:03:00Z", 0, 0, 0, -14.75, 0),
    ],
    2,
)


class OrderFlowViewSet(KeyedViewSet):
    @describes(
        "getOrderFlow",
        FlowList,
        "Order flow of one instrument, minute by minute",
        examples={"Two minutes": TWO_MINUTES},
        tag="Market",
        details="The sums of what `/ws/orderflow` sends, oldest first. A minute is available within about a "
        "second of its close, and then no longer changes. Only minutes that were made from ticks have "
        "order flow: one that was imported, or read from a venue's history after a gap, is left out. "
        "Where the side is estimated, ticks before the first move of the mid count towards neither side: "
        "in the minute in which an instrument's order flow begins, the two volumes may add up to less "
        "than the candle's volume.",
        query=[OrderFlowQuerySerializer],
        refusals=[SymbolNotFound("There is no such symbol. Did you mean EURUSD?", field="symbol")],
    )
    async def list(self, symbol: str) -> Answer:
        facts = catalogue.get(symbol)
        wanted = self.parameters(OrderFlowQuerySerializer)
        check_span(wanted["start"], wanted["end"])
        return Answer(await in_thread_promptly(read, facts, wanted["limit"], wanted["start"], wanted["end"]))


def read(facts: InstrumentFacts, limit: int, start_ms: int | None, end_ms: int | None) -> bytes:
    withheld = catalogue.withheld
    minutes = read_flows(facts.id, limit, start_ms=start_ms, end_ms=end_ms, withheld=withheld)
    return encode(FlowList(facts.symbol, [bucket_of(minute) for minute in minutes], len(minutes)))


def bucket_of(minute: MinuteFlow) -> FlowBucket:
    return FlowBucket(
        iso_s(minute.opened_ms),
        minute.bid_volume,
        minute.ask_volume,
        minute.delta,
        minute.cumulative_delta,
        minute.absorptions,
    )
