"""What a starting process takes from the store: candles, forming candles, last quotes."""

from __future__ import annotations

from instruments.catalogue import InstrumentFacts, catalogue
from market.prices.market import Prices
from market.prices.ticks import Tick
from market.prices.timeframes import TIMEFRAMES, interval_start

from . import store


def load(prices: Prices, now_ms: int) -> None:
    """Fill the memory of a process from the database."""
    midnight_ms = interval_start(now_ms, TIMEFRAMES["1d"])
    quotes = store.read_quotes()
    for facts in catalogue.all():
        _load_history(prices, facts, midnight_ms)
        if quote := quotes.get(facts.id):
            at_ms = int(quote.quoted_at.timestamp() * 1000)
            tick = Tick(facts.symbol, float(quote.bid), float(quote.ask), at_ms, 0.0)
            prices.board.put(tick, facts.digits)


def _load_history(prices: Prices, facts: InstrumentFacts, midnight_ms: int) -> None:
    history = prices.history(facts)
    for timeframe in TIMEFRAMES:
        for candle in store.read_candles(facts, timeframe):
            history.restore(timeframe, candle)
    for minute in store.read_minutes_since(facts, midnight_ms):
        history.builder.resume(minute)
