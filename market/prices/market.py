"""The prices of all instruments: one board, one history each."""

from __future__ import annotations

from instruments.catalogue import InstrumentFacts

from .board import Board
from .candles import Closed
from .history import History
from .records import AnyRecord, Began, Ended, Halted, Passed, Refilled, Taken
from .ticks import Tick


class Prices:
    """What quotes and candles are answered from."""

    def __init__(self, candle_price: str) -> None:
        self.board = Board()
        self.candle_price = candle_price
        self._mid = candle_price == "mid"
        self._histories: dict[str, History] = {}

    def history(self, facts: InstrumentFacts) -> History:
        history = self._histories.get(facts.symbol)
        if history is None:
            history = self._histories[facts.symbol] = History(facts.digits)
        return history

    def rounds_otherwise(self, facts: InstrumentFacts) -> bool:
        """Whether its digits were edited since its candles were loaded."""
        history = self._histories.get(facts.symbol)
        return history is not None and history.digits != facts.digits

    def apply(self, record: AnyRecord, facts: InstrumentFacts) -> list[Closed]:
        """Make a record part of what is known; returns the candles that it closed."""
        if type(record) is Taken:
            self.board.put(record, facts.digits, record.seq)
            price = self.price_of(record, facts)
            return self.history(facts).add(record.time_ms, price, record.ask, record.volume)
        history = self.history(facts)
        match record:
            case Ended():
                return history.close_until(record.until_ms)
            case Passed():
                # Before the minute and not after: what it belongs to must not be closed without it.
                return history.close_until(record.minute_ms) + history.fill(record.minute_ms)
            case Halted():
                return history.halt(record.reopens_ms)
            case Refilled():
                return history.add_minute(record.minute)
            case Began():
                self._begin(record, facts)
        return []

    def _begin(self, record: Began, facts: InstrumentFacts) -> None:
        """The quote; the candles come out of the store, which whoever applies this reads before."""
        if record.bid:
            self.board.put(record, facts.digits, record.seq)
        else:
            self.board.drop(facts.symbol)

    def price_of(self, tick: Tick | Taken, facts: InstrumentFacts) -> float:
        """What the candles are made of: the bid, or the mid where that is set."""
        return round((tick.bid + tick.ask) / 2, facts.digits) if self._mid else tick.bid

    def replace(self, fresh: Prices) -> None:
        """Everything at once by what was loaded anew."""
        self.board, self._histories = fresh.board, fresh._histories

    def put_history(self, symbol: str, history: History) -> None:
        self._histories[symbol] = history

    def clear(self) -> None:
        self.board.clear()
        self._histories.clear()
