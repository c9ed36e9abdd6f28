"""What a starting process takes from the store: candles, forming candles, last quotes."""

from __future__ import annotations

from instruments.catalogue import InstrumentFacts, catalogue
from market.prices.candles import Candle
from market.prices.market import Prices
from market.prices.ticks import Tick
from market.prices.timeframes import TIMEFRAMES, interval_start

from . import store


def load(prices: Prices, now_ms: int) -> None:
    """Fill the memory of a process from the database."""
    by_id = {facts.id: facts for facts in catalogue.all()}
    for facts in by_id.values():
        _load_history(prices, facts)
    for instrument_id, minute in store.read_minutes_since(interval_start(now_ms, TIMEFRAMES["1d"])):
        _resume(prices, by_id.get(instrument_id), minute)
    for instrument_id, quote in store.read_quotes().items():
        if facts_of := by_id.get(instrument_id):
            at_ms = int(quote.quoted_at.timestamp() * 1000)
            prices.board.put(
                Tick(facts_of.symbol, float(quote.bid), float(quote.ask), at_ms, 0.0), facts_of.digits
            )


def _load_history(prices: Prices, facts: InstrumentFacts) -> None:
    history = prices.history(facts)
    for timeframe in TIMEFRAMES:
        for candle in store.read_candles(facts, timeframe):
            history.restore(timeframe, candle)


def _resume(prices: Prices, facts: InstrumentFacts | None, minute: Candle) -> None:
    if facts is not None:
        prices.history(facts).builder.resume(minute)
