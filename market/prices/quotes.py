"""The prices of all instruments: the last quote of each, and its history."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import cast

import msgspec

from core.plain_json import number
from core.times import iso_ms
from instruments.facts import InstrumentFacts

from .candles import Closed, TickColumns
from .history import History
from .records import (
    AnyRecord,
    CandlesEnded,
    EmptyMinute,
    HistoryMinute,
    MarketClosed,
    SeriesBegan,
    Tick,
    TickAccepted,
    closed_by,
)


class Quote(msgspec.Struct):
    """A quote with its JSON, encoded when first asked for."""

    symbol: str
    bid: float
    ask: float
    spread: float
    time_ms: int
    seq: int = 0
    """Its number among the ticks of the symbol; 0 if unknown."""
    ahead_ms: int = 0
    """How far our clock was ahead of the venue's."""
    _fields: bytes = b""
    _whole: bytes = b""

    def age_ms(self, now_ms: int) -> int:
        """By the clock that its time is of."""
        return max(0, now_ms - self.ahead_ms - self.time_ms)

    @property
    def fields(self) -> bytes:
        """bid, ask, spread and timestamp, without braces: both answers are made of it."""
        if not self._fields:
            self._fields = (
                f'"bid":{number(self.bid)},"ask":{number(self.ask)},"spread":{number(self.spread)},'
                f'"timestamp":"{iso_ms(self.time_ms)}"'
            ).encode()
        return self._fields

    @property
    def whole(self) -> bytes:
        if not self._whole:
            self._whole = b'{"symbol":"%s",%s}' % (self.symbol.encode(), self.fields)
        return self._whole


class LastQuotes(dict[str, Quote]):
    """By symbol."""

    def put(self, tick: Tick | TickAccepted | SeriesBegan, digits: int, seq: int = 0) -> None:
        bid, ask = round(tick.bid, digits), round(tick.ask, digits)
        spread, ahead_ms = round(ask - bid, digits), getattr(tick, "ahead_ms", 0)
        self[tick.symbol] = Quote(tick.symbol, bid, ask, spread, tick.time_ms, seq, ahead_ms)

    def state(self, facts: InstrumentFacts, now_ms: int) -> str:
        return state_of(self.get(facts.symbol), facts, now_ms)


def state_of(quote: Quote | None, facts: InstrumentFacts, now_ms: int) -> str:
    """open, closed or stale: stale is an open market whose source has gone quiet."""
    if not facts.hours.is_open(now_ms if quote is None else now_ms - quote.ahead_ms):
        return "closed"
    if quote is None or quote.age_ms(now_ms) > facts.stale_after_s * 1000:
        return "stale"
    return "open"


class Prices:
    """What quotes and candles are answered from."""

    def __init__(self, candle_price: str) -> None:
        self.quotes = LastQuotes()
        self.candle_price = candle_price
        self._mid = candle_price == "mid"
        self.histories: dict[str, History] = {}
        self.before_reading: Callable[[str], None] | None = None
        """Applies the records of a symbol that wait."""

    def quote(self, symbol: str) -> Quote | None:
        """For readers outside the market, as the next three."""
        if self.before_reading is not None:
            self.before_reading(symbol)
        return self.quotes.get(symbol)

    def state(self, facts: InstrumentFacts, now_ms: int) -> str:
        return self.quoted(facts, now_ms)[1]

    def quoted(self, facts: InstrumentFacts, now_ms: int) -> tuple[Quote | None, str]:
        """The quote and the state."""
        if self.before_reading is not None:
            self.before_reading(facts.symbol)
        quote = self.quotes.get(facts.symbol)
        return quote, state_of(quote, facts, now_ms)

    def candles(self, facts: InstrumentFacts) -> History:
        if self.before_reading is not None:
            self.before_reading(facts.symbol)
        return self.history(facts)

    def history(self, facts: InstrumentFacts) -> History:
        history = self.histories.get(facts.symbol)
        if history is None:
            history = self.histories[facts.symbol] = History(facts.digits)
        return history

    def rounds_otherwise(self, facts: InstrumentFacts) -> bool:
        """Whether its digits were edited since its candles were loaded."""
        history = self.histories.get(facts.symbol)
        return history is not None and history.digits != facts.digits

    def apply(self, record: AnyRecord, facts: InstrumentFacts) -> list[Closed]:
        """Make a record part of what is known; returns the candles that it closed."""
        if type(record) is TickAccepted:
            self.quotes.put(record, facts.digits, record.seq)
            price, history = self.price_of(record, facts), self.history(facts)
            history.builder.price_by(record.source)
            if record.closed:
                _mark_partial(history, record)
            return history.add(record.time_ms, price, record.ask, record.volume)
        history = self.history(facts)
        _mark_partial(history, record)
        match record:
            case CandlesEnded():
                return history.close_until(record.until_ms)
            case EmptyMinute():
                history.builder.price_by(record.source)
                # Before the minute and not after: what it belongs to must not be closed without it.
                return history.close_until(record.minute_ms) + history.fill(record.minute_ms)
            case MarketClosed():
                return history.halt(record.reopens_ms)
            case HistoryMinute():
                if record.is_part:
                    return history.add_part(record.minute)
                return history.add_minute(record.minute, replaces=record.replaces)
            case SeriesBegan():
                self._begin(record, facts)
        return []

    def apply_all(self, records: Sequence[AnyRecord], facts: InstrumentFacts) -> None:
        """What `apply` comes to with each of them, all of one symbol, in a tenth of the time."""
        for kind, run in groupby(records, type):
            if kind is TickAccepted:
                self._apply_ticks(cast(list[TickAccepted], list(run)), facts)
            else:
                for record in run:
                    self.apply(record, facts)

    def _apply_ticks(self, ticks: list[TickAccepted], facts: InstrumentFacts) -> None:
        self.quotes.put(ticks[-1], facts.digits, ticks[-1].seq)
        bids, asks = [tick.bid for tick in ticks], [tick.ask for tick in ticks]
        prices = [self.price_of(tick, facts) for tick in ticks] if self._mid else bids
        times_ms, volumes = [tick.time_ms for tick in ticks], [tick.volume for tick in ticks]
        self.history(facts).add_all(TickColumns(times_ms, prices, asks, volumes))

    def _begin(self, record: SeriesBegan, facts: InstrumentFacts) -> None:
        """The quote; the candles come out of the store, which the caller reads first."""
        if record.bid:
            self.quotes.put(record, facts.digits, record.seq)
        else:
            self.quotes.pop(facts.symbol, None)

    def price_of(self, tick: Tick | TickAccepted, facts: InstrumentFacts) -> float:
        """What the candles are made of: the bid, or the mid where that is set."""
        return round((tick.bid + tick.ask) / 2, facts.digits) if self._mid else tick.bid

    def replace(self, fresh: Prices) -> None:
        """Replace everything by what was reloaded."""
        self.quotes, self.histories = fresh.quotes, fresh.histories

    def clear(self) -> None:
        self.quotes.clear()
        self.histories.clear()


def _mark_partial(history: History, record: AnyRecord) -> None:
    """As the engine that closed it by this record knew it."""
    minute = history.builder.forming("1m")
    if minute is not None and any(
        candle.partial and (candle.timeframe, candle.opened_ms) == ("1m", minute.opened_ms)
        for candle in closed_by(record)
    ):
        minute.partial = True
