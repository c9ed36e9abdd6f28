"""GET /api/symbols, from memory."""

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import UNSET, Meta, UnsetType
from rest_framework.request import Request

from core.contract.answers import Answer
from core.contract.parameters import QuerySerializer, WordListParameter, describes
from core.struct_schemas import Symbol, openapi
from core.viewset import ApiViewSet
from instruments.catalogue import InstrumentFacts, catalogue
from instruments.models import Instrument
from market import runtime as market

EXPANSIONS = ("digits", "hours", "state", "order_flow_source", "volume_kind")


class SymbolsQuerySerializer(QuerySerializer):
    expand = WordListParameter(EXPANSIONS, help_text="More fields for each instrument, separated by commas.")


class InstrumentHours(msgspec.Struct):
    component: ClassVar[str] = "Hours"

    timezone: Annotated[str, Meta(description="Of all times in the calendar, such as America/New_York.")]
    sessions: Annotated[str, Meta(description="24/7, or Mon-Fri 09:30-16:00.")]
    holidays: Annotated[
        Sequence[str], Meta(description="2026-12-25, or 2026-11-27@13:00 for an early close.")
    ]


class InstrumentItem(msgspec.Struct):
    """An instrument, with what `expand` asked for."""

    component: ClassVar[str] = "Instrument"

    symbol: Symbol
    name: Annotated[str, Meta(description="Its name in words.")]
    type: Annotated[str, openapi(enum=Instrument.Type.values, description="The class of the instrument.")]
    pip_size: Annotated[float, Meta(description="One pip, in price units.")]
    contract_size: Annotated[float, Meta(description="The amount of the underlying that one lot stands for.")]
    margin_rate: Annotated[
        float, Meta(description="The share of an order's value to be deposited: 0.05 is 5%.")
    ]
    min_lot: Annotated[float, Meta(description="The smallest order, in lots.")]
    max_lot: Annotated[float, Meta(description="The largest order, in lots.")]
    digits: Annotated[int | UnsetType, Meta(ge=0, description="Decimals of a price. Only on request.")] = (
        UNSET
    )
    hours: Annotated[InstrumentHours | UnsetType, Meta(description="Trading hours. Only on request.")] = UNSET
    state: Annotated[
        str | UnsetType,
        openapi(
            enum=["open", "closed", "stale"], description="The current state of the market. Only on request."
        ),
    ] = UNSET
    order_flow_source: Annotated[
        str | UnsetType,
        openapi(
            enum=Instrument.OrderFlowSource.values,
            description="Whether order flow is measured from trades or estimated. Only on request.",
        ),
    ] = UNSET
    volume_kind: Annotated[
        str | UnsetType,
        openapi(enum=Instrument.VolumeKind.values, description="What the volume counts. Only on request."),
    ] = UNSET


class InstrumentList(msgspec.Struct):
    items: Annotated[Sequence[InstrumentItem], Meta(description="Ordered by symbol.")]
    count: Annotated[int, Meta(ge=0, description="Instruments in this response.")]


FIELDS = tuple(name for name in InstrumentItem.__struct_fields__ if name not in EXPANSIONS)
EURUSD = InstrumentItem("EURUSD", "Euro / US Dollar", "forex", 0.0001, 100000, 0.0333, 0.01, 100)
XAUUSD = InstrumentItem("XAUUSD", "Gold / US Dollar", "commodity", 0.01, 100, 0.05, 0.01, 100)


class SymbolViewSet(ApiViewSet):
    @describes(
        "listSymbols",
        InstrumentList,
        "The instruments and their contract specifications",
        tag="Market",
        examples={"Two instruments": InstrumentList([EURUSD, XAUUSD], 2)},
        details="All instruments on offer, ordered by symbol.",
        query=[SymbolsQuerySerializer],
    )
    def list(self, request: Request) -> Answer:
        expansions = self.parameters(SymbolsQuerySerializer)["expand"]
        items = [describe(facts, expansions) for facts in catalogue.offered()]
        return Answer(InstrumentList(items, len(items)))


def describe(facts: InstrumentFacts, expansions: tuple[str, ...]) -> InstrumentItem:
    fields = {name: getattr(facts, name) for name in FIELDS}
    for name in expansions:
        fields[name] = expand(facts, name)
    return InstrumentItem(**fields)


def expand(facts: InstrumentFacts, name: str) -> Any:
    if name == "hours":
        return InstrumentHours(facts.timezone, facts.sessions, facts.holidays.split())
    if name == "state":
        return market.state(facts)
    return getattr(facts, name)
