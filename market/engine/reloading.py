"""Candles that an import wrote past the engine, taken into memory beside what goes on forming."""

from __future__ import annotations

from accounts.threads import in_thread
from instruments.catalogue import InstrumentFacts
from market.prices.history import History
from market.prices.market import Prices

from .boot import load_history


async def reload_candles(prices: Prices, facts: InstrumentFacts) -> None:
    """What was closed before this must be written; what closes while it reads is not lost."""
    fresh = History(facts.digits)
    await in_thread(load_history, fresh, facts)
    old = prices.history(facts)
    stored_ms = fresh.last_closed_ms("1m") or 0
    for minute in old.recent:
        if minute.opened_ms > stored_ms:
            fresh.add_minute(minute)
    quote = prices.board.get(facts.symbol)
    if quote is not None:
        price = (quote.bid + quote.ask) / 2 if prices.candle_price == "mid" else quote.bid
        fresh.builder.resume_forming(old.builder.forming("1m"), round(price, facts.digits), quote.ask)
    prices.put_history(facts.symbol, fresh)
