"""The lines of OANDA's pricing stream. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from market.prices.ticks import Tick

from .base import Refuse
from .quotes import Quotes
from .rfc3339 import to_ms

# A price with its whole depth has some 600 bytes; what goes on much longer is no line of theirs.
LONGEST_LINE = 65_536


class Level(msgspec.Struct):
    price: float


class Message(msgspec.Struct):
    type: str
    instrument: str = ""
    time: str = ""
    status: str = "tradeable"
    tradeable: bool = True
    bids: list[Level] = []
    asks: list[Level] = []


# Prices are strings.
MESSAGE = msgspec.json.Decoder(Message, strict=False)


class OandaReader:
    def __init__(self, symbols: Mapping[str, str], refuse: Refuse) -> None:
        self._quotes = Quotes(symbols, refuse)

    def read(self, raw: bytes | str, received_ms: int) -> list[Tick]:
        """Heartbeats, prices nobody can trade at (a weekend's) and half quotes are but signs of life."""
        price = MESSAGE.decode(raw)
        is_open = price.tradeable and price.status == "tradeable"
        if price.type != "PRICE" or not (is_open and price.bids and price.asks):
            return []
        # Best first.
        bid, ask = price.bids[0].price, price.asks[0].price
        return self._quotes.quote(price.instrument, bid, ask, to_ms(price.time))


class LineTooLong(Exception):
    """Bytes came and came, and no line ended."""


class Lines:
    """Cuts bytes into lines, wherever the chunks of the stream begin and end."""

    def __init__(self) -> None:
        self._rest = b""

    def add(self, chunk: bytes) -> list[bytes]:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > LONGEST_LINE:
            raise LineTooLong(f"a line has more than {LONGEST_LINE} bytes")
        return [line for line in lines if line.strip()]
