"""The last quote of every symbol, and what it says of the market's state."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from accounts.plain_json import number
from instruments.catalogue import InstrumentFacts

from .records import Began, Taken
from .ticks import Tick


def iso_ms(time_ms: int) -> str:
    """2026-11-21T12:00:00.250Z"""
    moment = datetime.fromtimestamp(time_ms // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{time_ms % 1000:03d}Z"


class Quote(msgspec.Struct):
    """A quote with its JSON, encoded when first asked for."""

    symbol: str
    bid: float
    ask: float
    spread: float
    time_ms: int
    seq: int = 0
    """Its number among the ticks of the symbol; 0 where nobody knows."""
    _fields: bytes = b""

    @property
    def fields(self) -> bytes:
        """bid, ask, spread and timestamp, without braces: both answers are made of it."""
        if not self._fields:
            self._fields = (
                f'"bid":{number(self.bid)},"ask":{number(self.ask)},"spread":{number(self.spread)},'
                f'"timestamp":"{iso_ms(self.time_ms)}"'
            ).encode()
        return self._fields


class Board:
    def __init__(self) -> None:
        self._quotes: dict[str, Quote] = {}

    def put(self, tick: Tick | Taken | Began, digits: int, seq: int = 0) -> None:
        bid, ask = round(tick.bid, digits), round(tick.ask, digits)
        self._quotes[tick.symbol] = Quote(tick.symbol, bid, ask, round(ask - bid, digits), tick.time_ms, seq)

    def get(self, symbol: str) -> Quote | None:
        return self._quotes.get(symbol)

    def drop(self, symbol: str) -> None:
        self._quotes.pop(symbol, None)

    def clear(self) -> None:
        self._quotes.clear()

    def state(self, facts: InstrumentFacts, now_ms: int) -> str:
        """open, closed or stale: stale is an open market whose source has gone quiet."""
        if not facts.hours.is_open(now_ms):
            return "closed"
        quote = self._quotes.get(facts.symbol)
        if quote is None or now_ms - quote.time_ms > facts.stale_after_s * 1000:
            return "stale"
        return "open"
