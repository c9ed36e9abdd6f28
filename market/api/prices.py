"""GET /api/market/{symbol} and its quote, answered from memory, already encoded."""

from collections.abc import Coroutine, Sequence
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta
from rest_framework.decorators import action
from rest_framework.request import Request

from core import clock
from core.contract.answers import Answer
from core.contract.errors import InvalidTimeframe, QuoteUnavailable, SymbolNotFound
from core.contract.parameters import (
    BooleanParameter,
    ChoiceParameter,
    IntegerParameter,
    QuerySerializer,
    WordListParameter,
    describes,
)
from core.struct_schemas import Moment, Symbol, openapi
from core.threads import in_thread_promptly
from core.times import iso_s
from core.viewset import ApiViewSet
from instruments.catalogue import catalogue
from instruments.facts import InstrumentFacts
from market import runtime
from market.prices.candles import TIMEFRAMES
from market.prices.history import KEPT, CandleRow, EncodedBars, OhlcvCandle, encode_candles
from market.prices.quotes import Quote
from market.store import present_kind
from market.store.candle_rows import StoredSeries, read_bases

# Trades have no bid and ask, so imported trades make candles and no quote.
NOT_QUOTED = (
    "{symbol} has not been quoted yet, so it has no bid and ask. Candles that were imported for it "
    "are available nevertheless, from GET /api/market/{symbol}/history."
)
REFUSALS = (
    SymbolNotFound("There is no such symbol. Did you mean EURUSD?", field="symbol"),
    QuoteUnavailable(NOT_QUOTED.format(symbol="EURUSD"), retry_after=5),
)


BASIS = "basis"
EXPAND_BASIS = "`basis`: what each candle is made of, and whether something of it was missed."
# Of one that still forms, or is just being written.
UNKNOWN = None, None


class BarsQuerySerializer(QuerySerializer):
    timeframe = ChoiceParameter(
        list(TIMEFRAMES),
        default="1h",
        refusal=InvalidTimeframe,
        help_text="The interval of a candle. The default differs from that of the history, which is 1m.",
    )
    bars = IntegerParameter(default=100, max_value=KEPT, help_text="Number of candles.")
    closed_only = BooleanParameter(help_text="Leave out the candle that is still forming.")
    expand = WordListParameter([BASIS], help_text=EXPAND_BASIS)


CandleTimeframe = Annotated[
    str, openapi(enum=list(TIMEFRAMES), description="The interval of a candle, as requested.")
]


Bid = Annotated[float, Meta(description="The price at which you can sell.")]
Ask = Annotated[float, Meta(description="The price at which you can buy.")]
Spread = Annotated[float, Meta(description="`ask` − `bid`, in price units.")]
QuotedAt = Annotated[Moment, Meta(description="The tick's own time.")]


class NestedQuote(msgspec.Struct):
    bid: Bid
    ask: Ask
    spread: Spread
    timestamp: QuotedAt


class SymbolQuote(msgspec.Struct):
    component: ClassVar[str] = "Quote"

    symbol: Symbol
    bid: Bid
    ask: Ask
    spread: Spread
    timestamp: QuotedAt


Candles = Annotated[list[OhlcvCandle], Meta(description="Candles, oldest first.")]


class SymbolMarket(msgspec.Struct):
    component: ClassVar[str] = "Market"

    symbol: Symbol
    timeframe: CandleTimeframe
    ohlcv: Candles
    quote: Annotated[NestedQuote, Meta(description="The current quote.")]


QUOTED = 1.0841, 1.08424, 0.00014, "2026-11-20T14:03:27.250Z"
EURUSD_HOURS = SymbolMarket(
    "EURUSD",
    "1h",
    [
        OhlcvCandle("2026-11-20T13:00:00Z", 1.08362, 1.08431, 1.08339, 1.08417, 4182),
        OhlcvCandle("2026-11-20T14:00:00Z", 1.08417, 1.0842, 1.08402, 1.0841, 263),
    ],
    NestedQuote(*QUOTED),
)


class MarketViewSet(ApiViewSet):
    lookup_field, lookup_value_regex = "symbol", "[^/]+"

    @describes(
        "getMarket",
        SymbolMarket,
        "Candles and the current quote of one instrument",
        examples={"Hourly candles": EURUSD_HOURS},
        tag="Market",
        details="Candles are stamped with the start of their interval (UTC) and listed oldest first. On an "
        "open market, the last one is still forming; `X-Last-Closed` names the last one that is closed. A "
        "minute is closed when a tick of a later one arrives, or two seconds after its end; then it no "
        "longer changes.",
        query=[BarsQuerySerializer],
        refusals=REFUSALS,
        headers=["X-Last-Closed", "X-Quote-Age-Ms", "X-Market-State"],
    )
    def retrieve(self, request: Request, symbol: str) -> Answer | Coroutine[Any, Any, Answer]:
        facts = catalogue.get(symbol)
        wanted = self.parameters(BarsQuerySerializer)
        quote, headers = quoted(facts)
        chosen, closed_only = (wanted["timeframe"], wanted["bars"]), wanted["closed_only"] == "true"
        candles = runtime.prices.candles(facts)
        bars = candles.bars(*chosen, closed_only=closed_only)
        if bars.last_closed_ms is not None:
            headers["X-Last-Closed"] = iso_s(bars.last_closed_ms)
        if wanted["expand"]:
            rows = candles.rows(*chosen, closed_only=closed_only)
            return with_basis(facts, wanted["timeframe"], rows, quote, headers)
        answered = bars.answered
        if answered is None or answered[0] is not quote:
            answered = bars.answered = quote, framed(facts.symbol, wanted["timeframe"], bars, quote)
        return Answer(answered[1], headers)

    @action(detail=True)  # type: ignore[type-var]
    @describes(
        "getQuote",
        SymbolQuote,
        "The current quote of one instrument",
        examples={"One quote": SymbolQuote("EURUSD", *QUOTED)},
        tag="Market",
        details="For lightweight polling. On a closed or stale market, the last known quote is returned with "
        "its own time; see `X-Market-State` and `X-Quote-Age-Ms`.",
        refusals=REFUSALS,
        headers=["X-Quote-Age-Ms", "X-Market-State"],
    )
    def quote(self, request: Request, symbol: str) -> Answer:
        quote, headers = quoted(catalogue.get(symbol))
        return Answer(quote.whole, headers)


async def with_basis(
    facts: InstrumentFacts, timeframe: str, rows: Sequence[CandleRow], quote: Quote, headers: dict[str, str]
) -> Answer:
    """What a candle is made of only the database knows."""
    known = await in_thread_promptly(bases_of, facts, timeframe, rows) if rows else {}
    candles = [
        OhlcvCandle(iso_s(row.opened_ms), *row[1:], *known.get(row.opened_ms, UNKNOWN)) for row in rows
    ]
    bars = EncodedBars(encode_candles(candles), b"", None)
    return Answer(b"".join(framed(facts.symbol, timeframe, bars, quote)), headers)


def bases_of(
    facts: InstrumentFacts, timeframe: str, rows: Sequence[CandleRow]
) -> dict[int, tuple[str, bool]]:
    series = StoredSeries(facts.id, facts.digits, timeframe, present_kind(facts.id))
    return read_bases(series, rows[0].opened_ms, rows[-1].opened_ms)


def framed(symbol: str, timeframe: str, bars: EncodedBars, quote: Quote) -> tuple[bytes, ...]:
    begins = f'{{"symbol":"{symbol}","timeframe":"{timeframe}","ohlcv":['
    return begins.encode(), bars.closed, b'%s],"quote":{%s}}' % (bars.forming, quote.fields)


def quoted(facts: InstrumentFacts) -> tuple[Quote, dict[str, str]]:
    """The quote, and the headers that say how old it is and whether its market is open."""
    now_ms = clock.now_ms()
    quote, state = runtime.prices.quoted(facts, now_ms)
    if quote is None:
        raise QuoteUnavailable(NOT_QUOTED.format(symbol=facts.symbol), retry_after=5)
    return quote, {"X-Quote-Age-Ms": str(quote.age_ms(now_ms)), "X-Market-State": state}
