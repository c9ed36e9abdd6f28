"""GET /api/market/{symbol} and its quote, from memory."""

from __future__ import annotations

from django.http import HttpRequest

from accounts.api import Answer, ApiViewSet
from accounts.exceptions import QuoteUnavailable, SymbolNotFound
from accounts.schema import describes
from instruments.catalogue import InstrumentFacts, catalogue

from . import services
from .prices.board import Quote
from .prices.history import iso
from .serializers import BarsQuerySerializer, MarketSerializer, QuoteSerializer

# Trades have no bid and ask: what was imported of them makes candles, and no quote.
NOT_QUOTED = (
    "{symbol} has not been quoted yet, so there is no bid and ask to answer. Candles that were imported "
    "for it are stored all the same: `manage.py export_candles {symbol} 1m` reads them."
)
REFUSALS = (
    SymbolNotFound("There is no such symbol. Did you mean EURUSD?", field="symbol"),
    QuoteUnavailable(NOT_QUOTED.format(symbol="EURUSD"), retry_after=5),
)


class MarketViewSet(ApiViewSet):
    @describes(
        "getMarket",
        MarketSerializer,
        "Candles and the current quote of one instrument",
        tag="Market",
        details="Candles are stamped with the open of their interval (UTC) and come oldest first. On an open "
        "market the last one is still forming; `X-Last-Closed` names the last that is not. A minute is "
        "closed when a tick of a later one comes, or two seconds after its end; then it changes no more.",
        query=[BarsQuerySerializer],
        refused_queries=["timeframe=2h", "bars=501", "bars=ten", "closed_only=yes"],
        refusals=REFUSALS,
        headers=["X-Last-Closed", "X-Quote-Age-Ms", "X-Market-State"],
    )
    async def retrieve(self, request: HttpRequest, symbol: str) -> Answer:
        facts = catalogue.get(symbol)
        wanted = self.parameters(request, BarsQuerySerializer)
        quote = quote_of(facts)
        now_ms = services.now_ms()
        state = services.prices.board.state(facts, now_ms)
        bars = services.prices.history(facts).bars(
            wanted["timeframe"],
            wanted["bars"],
            closed_only=wanted["closed_only"] == "true",
        )
        body = b'{"symbol":"%s","timeframe":"%s","ohlcv":[%s],"quote":{%s}}' % (
            facts.symbol.encode(),
            wanted["timeframe"].encode(),
            bars.ohlcv,
            quote.fields,
        )
        headers = quote_headers(quote, state, now_ms)
        if bars.last_closed_ms is not None:
            headers["X-Last-Closed"] = iso(bars.last_closed_ms)
        return Answer(body, headers)

    @describes(
        "getQuote",
        QuoteSerializer,
        "The current quote of one instrument",
        tag="Market",
        details="For lightweight polling. On a closed or stale market it is the last quote there was, with "
        "its own time; `X-Market-State` and `X-Quote-Age-Ms` say so.",
        refusals=REFUSALS,
        headers=["X-Quote-Age-Ms", "X-Market-State"],
    )
    async def quote(self, request: HttpRequest, symbol: str) -> Answer:
        facts = catalogue.get(symbol)
        quote = quote_of(facts)
        now_ms = services.now_ms()
        body = b'{"symbol":"%s",%s}' % (facts.symbol.encode(), quote.fields)
        return Answer(body, quote_headers(quote, services.prices.board.state(facts, now_ms), now_ms))


def quote_of(facts: InstrumentFacts) -> Quote:
    quote = services.prices.board.get(facts.symbol)
    if quote is None:
        raise QuoteUnavailable(NOT_QUOTED.format(symbol=facts.symbol), retry_after=5)
    return quote


def quote_headers(quote: Quote, state: str, now_ms: int) -> dict[str, str]:
    return {"X-Quote-Age-Ms": str(max(0, now_ms - quote.time_ms)), "X-Market-State": state}
