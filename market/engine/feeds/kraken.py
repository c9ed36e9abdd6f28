"""Kraken's WebSocket API v2: the best bid and ask at every change, and trades with their taker's side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from market.prices.ticks import Tick

from .base import Lost, Refuse, not_served
from .history.kraken import kraken_history
from .quotes import Quotes
from .rfc3339 import to_ms
from .websocket import Say, WebSocketFeed, in_batches

PER_MESSAGE = 100
PING = b'{"method":"ping"}'
CHANNELS: dict[str, dict[str, Any]] = {
    "ticker": {"event_trigger": "bbo", "snapshot": True},
    # Its snapshot would be the last fifty trades of before.
    "trade": {"snapshot": False},
}
Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class Message(msgspec.Struct):
    channel: str = ""
    data: list[msgspec.Raw] = []
    method: str = ""
    success: bool = True
    error: str | None = None
    symbol: str | None = None
    rate_error: str = msgspec.field(name="Error", default="")


class Ticker(msgspec.Struct):
    symbol: str
    bid: float
    ask: float
    timestamp: str | None = None


class Trade(msgspec.Struct):
    symbol: str
    side: Literal["buy", "sell"]
    price: float
    qty: float
    trade_id: Number
    timestamp: str | None = None


MESSAGE = msgspec.json.Decoder(Message)
TICKER = msgspec.json.Decoder(Ticker)
TRADE = msgspec.json.Decoder(Trade)


def venue_symbol(symbol: str) -> str:
    """EURUSD is EUR/USD there, BTCUSDT is BTC/USDT."""
    length = 4 if symbol.endswith(("USDT", "USDC")) else 3
    return f"{symbol[:-length]}/{symbol[-length:]}" if len(symbol) > length else symbol


class KrakenReader:
    def __init__(self, symbols: Mapping[str, str], refuse: Refuse, say: Say) -> None:
        self._names = sorted(set(symbols.values()))
        self._refuse = refuse
        self._say = say
        self._quotes = Quotes(symbols, refuse)
        self._unknown: set[str] = set()

    def subscribe(self) -> None:
        for names in in_batches(self._names, PER_MESSAGE):
            for channel, options in CHANNELS.items():
                params = {"channel": channel, "symbol": names, **options}
                self._say(msgspec.json.encode({"method": "subscribe", "params": params}))

    def probe(self) -> None:
        self._say(PING)

    def read(self, raw: bytes | str, received_ms: int) -> list[Tick]:
        message = MESSAGE.decode(raw)
        match message.channel:
            case "ticker":
                read = self._ticker
            case "trade":
                read = self._trade
            case "":
                self._hear_answer(message)
                return []
            case _:
                return []
        ticks: list[Tick] = []
        for item in message.data:
            # One that makes no sense does not take the others with it.
            try:
                ticks += read(item, received_ms)
            except ValueError as error:
                self._refuse("malformed", f"a {message.channel} makes no sense: {error}")
        return ticks

    def _ticker(self, item: msgspec.Raw, received_ms: int) -> list[Tick]:
        ticker = TICKER.decode(item)
        time_ms = to_ms(ticker.timestamp) if ticker.timestamp else received_ms
        return self._quotes.quote(ticker.symbol, ticker.bid, ticker.ask, time_ms)

    def _trade(self, item: msgspec.Raw, received_ms: int) -> list[Tick]:
        trade = TRADE.decode(item)
        time_ms = to_ms(trade.timestamp) if trade.timestamp else received_ms
        side = 1 if trade.side == "buy" else -1
        return self._quotes.trade(trade.symbol, trade.price, trade.qty, side, time_ms, trade.trade_id)

    def _hear_answer(self, message: Message) -> None:
        if message.rate_error or not (message.success or message.symbol):
            raise Lost(f"Kraken refused: {(message.rate_error or message.error or 'no reason')[:200]}")
        if not message.method:
            raise ValueError("neither a channel nor an answer")
        # Refused on both channels, it is one symbol.
        if not message.success and message.symbol not in self._unknown:
            self._unknown.add(message.symbol or "")
            why = (message.error or "no reason")[:200]
            name = message.symbol or ""
            self._refuse("unknown_symbol", not_served(name, why, "kraken:BTC/USD"), name)


class KrakenFeed(WebSocketFeed):
    venue = "Kraken"
    url_setting, rest_setting = "KRAKEN_WS_URL", "KRAKEN_REST_URL"
    bars = staticmethod(kraken_history)

    def reader(self, symbols: Mapping[str, str], refuse: Refuse, say: Say) -> KrakenReader:
        return KrakenReader(symbols, refuse, say)
