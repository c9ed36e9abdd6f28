"""The prices of all instruments: one board, one history each."""

from __future__ import annotations

from instruments.catalogue import InstrumentFacts

from .board import Board
from .candles import Closed
from .history import History
from .ticks import Tick


class Prices:
    """What quotes and candles are answered from."""

    def __init__(self, candle_price: str) -> None:
        self.board = Board()
        self._mid = candle_price == "mid"
        self._histories: dict[str, History] = {}

    def history(self, facts: InstrumentFacts) -> History:
        history = self._histories.get(facts.symbol)
        if history is None:
            history = self._histories[facts.symbol] = History(facts.digits)
        return history

    def take(self, tick: Tick, facts: InstrumentFacts) -> list[Closed]:
        """Show a checked tick on the board and fold it into the candles; returns those it closed."""
        self.board.put(tick, facts.digits)
        price = self.price_of(tick, facts)
        return self.history(facts).add(tick.time_ms, price, tick.ask, tick.volume)

    def price_of(self, tick: Tick, facts: InstrumentFacts) -> float:
        """What the candles are made of: the bid, or the mid where that is set."""
        return round((tick.bid + tick.ask) / 2, facts.digits) if self._mid else tick.bid

    def clear(self) -> None:
        self.board.clear()
        self._histories.clear()
