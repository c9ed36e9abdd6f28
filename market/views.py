"""GET /api/market/{symbol} and its quote, from memory."""

from __future__ import annotations

from django.http import HttpRequest

from accounts.api import Answer, ApiViewSet
from accounts.exceptions import QuoteUnavailable
from instruments.catalogue import InstrumentFacts, catalogue

from . import services
from .prices.board import Quote
from .prices.history import iso
from .serializers import BarsQuerySerializer


class MarketViewSet(ApiViewSet):
    async def retrieve(self, request: HttpRequest, symbol: str) -> Answer:
        facts = catalogue.get(symbol)
        wanted = self.parameters(request, BarsQuerySerializer)
        quote = quote_of(facts)
        now_ms = services.now_ms()
        state = services.prices.board.state(facts, now_ms)
        bars = services.prices.history(facts).bars(
            wanted["timeframe"],
            wanted["bars"],
            now_ms,
            is_open=state != "closed",
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

    async def quote(self, request: HttpRequest, symbol: str) -> Answer:
        facts = catalogue.get(symbol)
        quote = quote_of(facts)
        now_ms = services.now_ms()
        body = b'{"symbol":"%s",%s}' % (facts.symbol.encode(), quote.fields)
        return Answer(body, quote_headers(quote, services.prices.board.state(facts, now_ms), now_ms))


def quote_of(facts: InstrumentFacts) -> Quote:
    quote = services.prices.board.get(facts.symbol)
    if quote is None:
        raise QuoteUnavailable(f"{facts.symbol} has not been quoted yet.", retry_after=5)
    return quote


def quote_headers(quote: Quote, state: str, now_ms: int) -> dict[str, str]:
    return {"X-Quote-Age-Ms": str(max(0, now_ms - quote.time_ms)), "X-Market-State": state}
