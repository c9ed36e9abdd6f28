"""GET /api/quotes: the quotes of many instruments at once, from memory."""

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from accounts.viewset import KeyedViewSet
from core import clock
from core.contract.answers import Answer
from core.contract.errors import InvalidParameter, ParameterOutOfRange
from core.contract.parameters import QuerySerializer, SymbolListParameter
from core.contract.schema import describes
from core.plain_json import encode
from core.struct_schemas import openapi
from instruments.catalogue import catalogue
from instruments.facts import InstrumentFacts
from market import runtime
from market.streams.protocol.subscriptions import upper

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
        Literal["symbol_not_found", "quote_unavailable"],
        Meta(description="There is no such instrument, or it has not been quoted yet."),
    ]


class QuoteList(msgspec.Struct):
    items: Annotated[Sequence[ListedQuote], Meta(description="In the order requested.")]
    count: Annotated[int, Meta(ge=0, description="Quotes in this response.")]
    rejected: Annotated[Sequence[RejectedSymbol], Meta(description="Symbols without a quote.")]


EURUSD = ListedQuote("EURUSD", *QUOTED, state="open", age_ms=262)


class QuotesViewSet(KeyedViewSet):
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
    def list(self) -> Answer:
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
