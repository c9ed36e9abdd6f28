"""What a starting process takes from the store: candles, forming candles, last quotes."""

from __future__ import annotations

from instruments.catalogue import InstrumentFacts, catalogue
from market.prices.history import History
from market.prices.market import Prices
from market.prices.ticks import Tick
from market.prices.timeframes import TIMEFRAMES, interval_start

from . import checkpoints, store


def load(prices: Prices) -> dict[str, Tick]:
    """Fill the memory of a process from the database; returns the last ticks."""
    ticks: dict[str, Tick] = {}
    known = checkpoints.read_checkpoints()
    for facts in catalogue.all():
        history = prices.history(facts)
        _load_history(history, facts)
        if checkpoint := known.get(facts.id):
            tick = ticks[facts.symbol] = checkpoint.last
            prices.board.put(tick, facts.digits)
            history.builder.resume_forming(checkpoint.minute, prices.price_of(tick, facts), tick.ask)
    return ticks


def _load_history(history: History, facts: InstrumentFacts) -> None:
    for timeframe in TIMEFRAMES:
        for candle in store.read_candles(facts, timeframe):
            history.restore(timeframe, candle)
    # Not today's: what formed when the service ended may be of Friday, and is closed now.
    last_ms = history.last_closed_ms("1m")
    if last_ms is not None:
        for minute in store.read_minutes_since(facts, interval_start(last_ms, TIMEFRAMES["1d"])):
            history.builder.resume(minute)
