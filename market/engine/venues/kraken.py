"""Kraken's WebSocket API v2, with the best bid and ask at every change and trades with their taker's side,
and its REST side: at most the last 720 bars of trades."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from core.http import HttpFailed
from market.prices.candles import PriceBar
from market.prices.records import Tick

from .venue_feed import FeedLost, MessageReader, Refuse, SendToVenue, WebSocketFeed, in_batches, not_served
from .venue_history import (
    MOST_REQUESTS,
    TRADES_PER_REQUEST,
    MinutesRequest,
    Params,
    TooManyTrades,
    TradesBefore,
    TradesRequest,
    VenueTrade,
    decode,
    minute_of_trades,
)
from .venue_quotes import LONGEST_NAME, to_ms

PER_MESSAGE = 100
ONLINE = "online"
ALREADY = "Already subscribed"
PING = b'{"method":"ping"}'
CHANNELS: dict[str, dict[str, Any]] = {
    "ticker": {"event_trigger": "bbo", "snapshot": True},
    # The last fifty trades, which end where the live ones begin.
    "trade": {"snapshot": True},
}
Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class KrakenMessage(msgspec.Struct):
    channel: str = ""
    type: str = ""
    data: list[msgspec.Raw] = []
    method: str = ""
    success: bool = True
    error: str | None = None
    symbol: str | None = None
    rate_error: str = msgspec.field(name="Error", default="")
    time_out: str = ""


class KrakenStatus(msgspec.Struct):
    system: str


class KrakenTicker(msgspec.Struct):
    symbol: str
    bid: float
    ask: float
    timestamp: str | None = None


class KrakenTrade(msgspec.Struct):
    symbol: str
    side: Literal["buy", "sell"]
    price: float
    qty: float
    trade_id: Number
    timestamp: str | None = None


MESSAGE = msgspec.json.Decoder(KrakenMessage)
STATUS = msgspec.json.Decoder(KrakenStatus)
TICKER = msgspec.json.Decoder(KrakenTicker)
TRADE = msgspec.json.Decoder(KrakenTrade)


def venue_symbol(symbol: str) -> str:
    """EURUSD is EUR/USD there, BTCUSDT is BTC/USDT."""
    length = 4 if symbol.endswith(("USDT", "USDC")) else 3
    return f"{symbol[:-length]}/{symbol[-length:]}" if len(symbol) > length else symbol


class KrakenReader(MessageReader):
    def __init__(self, symbols: Mapping[str, str], refuse: Refuse, say: SendToVenue) -> None:
        super().__init__(symbols, refuse, say)
        self._unknown: set[str] = set()
        self._is_snapshot = False
        self.before = {name: TradesBefore() for name in self.names}

    def subscribe(self) -> None:
        for names in in_batches(self.names, PER_MESSAGE):
            for channel, options in CHANNELS.items():
                params = {"channel": channel, "symbol": names, **options}
                self.say(msgspec.json.encode({"method": "subscribe", "params": params}))

    def probe(self) -> None:
        self.say(PING)

    def read_message(self, raw: bytes | str, received_ms: int) -> list[Tick]:
        message = MESSAGE.decode(raw)
        if message.method == "pong":
            self.base.answer()
        if message.time_out:
            self.base.hear(to_ms(message.time_out), received_ms)
        self._is_snapshot = message.type == "snapshot"
        match message.channel:
            case "ticker":
                read = self._ticker
            case "trade":
                read = self._trade
            case "status":
                read = self._status
            case "":
                self._read_answer(message)
                return []
            case _:
                return []
        ticks: list[Tick] = []
        for item in message.data:
            # One that makes no sense does not take the others with it.
            try:
                ticks += read(item, received_ms)
            except ValueError as error:
                self.refuse("malformed", f"a {message.channel} makes no sense: {error}")
        return ticks

    def _status(self, item: msgspec.Raw, received_ms: int) -> list[Tick]:
        system = STATUS.decode(item).system
        if system != ONLINE:
            raise FeedLost(f"Kraken's trading is not open, its status is {system[:LONGEST_NAME]}")
        return []

    def _ticker(self, item: msgspec.Raw, received_ms: int) -> list[Tick]:
        ticker = TICKER.decode(item)
        time_ms = self._time_of(ticker.timestamp, received_ms)
        is_standing = self._is_snapshot and bool(ticker.timestamp)
        return self.quotes.quote(ticker.symbol, ticker.bid, ticker.ask, time_ms, is_standing=is_standing)

    def _trade(self, item: msgspec.Raw, received_ms: int) -> list[Tick]:
        trade = TRADE.decode(item)
        time_ms = self._time_of(trade.timestamp, received_ms)
        if time_ms is None:
            return []
        side = 1 if trade.side == "buy" else -1
        if self._is_snapshot:
            if before := self.before.get(trade.symbol):
                before.tell(VenueTrade(trade.trade_id, time_ms, trade.price, trade.qty, side))
            return []
        return self.quotes.trade(trade.symbol, trade.price, trade.qty, side, time_ms, trade.trade_id)

    def _time_of(self, timestamp: str | None, received_ms: int) -> int | None:
        if not timestamp:
            return self.date(received_ms)
        time_ms = to_ms(timestamp)
        if not self._is_snapshot:
            self.base.hear(time_ms, received_ms)
        return time_ms

    def _read_answer(self, message: KrakenMessage) -> None:
        if message.rate_error or not (message.success or message.symbol):
            raise FeedLost(f"Kraken refused: {(message.rate_error or message.error or 'no reason')[:200]}")
        if not message.method:
            raise ValueError("neither a channel nor an answer")
        if (message.error or "").startswith(ALREADY):
            return
        # Refused on both channels, it is one symbol.
        if not message.success and message.symbol not in self._unknown:
            self._unknown.add(message.symbol or "")
            why = (message.error or "no reason")[:200]
            name = message.symbol or ""
            self.before.pop(name, None)
            self.refuse("unknown_symbol", not_served(name, why, "kraken:BTC/USD"), name)


class KrakenFeed(WebSocketFeed):
    venue = "Kraken"
    url_setting, rest_setting = "KRAKEN_WS_URL", "KRAKEN_REST_URL"
    reader = KrakenReader

    async def history(self, wanted: MinutesRequest) -> list[PriceBar]:
        return await kraken_history(wanted)

    async def trades(self, wanted: TradesRequest) -> list[VenueTrade]:
        return await self.trades_before(wanted) or await kraken_trades(wanted)


# The REST side has its own names for the oldest coins.
OLD_NAMES = {"BTC": "XBT", "DOGE": "XDG"}


class KrakenBar(msgspec.Struct, array_like=True):
    opened_s: int
    open: float
    high: float
    low: float
    close: float
    average: float
    traded: float
    trades: int

    @property
    def opened_ms(self) -> int:
        return self.opened_s * 1000


class KrakenBars(msgspec.Struct):
    error: list[str]
    result: dict[str, list[KrakenBar] | int | str] = {}


ANSWER = msgspec.json.Decoder(KrakenBars, strict=False)


def rest_pair(pair: str) -> str:
    """BTC/USD is XBTUSD there."""
    return "".join(OLD_NAMES.get(part, part) for part in pair.split("/"))


async def kraken_history(wanted: MinutesRequest) -> list[PriceBar]:
    # A second early: the documentation does not say whether the bar at `since` is included.
    params: Params = {"pair": rest_pair(wanted.name), "interval": 1, "since": wanted.start_ms // 1000 - 1}
    answer = await wanted.ask("/0/public/OHLC", params)
    return read_bars(answer.body, wanted.end_ms, counted=wanted.counted)


def read_bars(body: bytes, end_ms: int, *, counted: bool) -> list[PriceBar]:
    # The last one is always still forming. No end can be asked for, so what comes after it is no fault.
    bars = [bar for bar in _bars(body)[:-1] if bar.opened_ms < end_ms]
    return [minute_of_trades(bar, counted=counted) for bar in bars]


def _bars(body: bytes) -> list[KrakenBar]:
    answer = decode(ANSWER, body, "Kraken's bars")
    if answer.error:
        raise HttpFailed(f"Kraken refused: {', '.join(answer.error)[:200]}")
    # Keyed by yet another name of the pair (XXBTZUSD), beside "last".
    lists = [bars for bars in answer.result.values() if isinstance(bars, list)]
    if len(lists) != 1:
        raise HttpFailed("Kraken answered without bars")
    return lists[0]


class OldTrade(msgspec.Struct, array_like=True):
    price: float
    size: float
    traded_s: float
    side: Literal["b", "s"]
    kind: str
    note: str
    number: Number


class OldTrades(msgspec.Struct):
    error: list[str]
    result: dict[str, list[OldTrade] | int | str] = {}


TRADES = msgspec.json.Decoder(OldTrades, strict=False)


async def kraken_trades(wanted: TradesRequest) -> list[VenueTrade]:
    """All until now, or TooManyTrades."""
    found, since = list[VenueTrade](), str(wanted.since_ms * 1_000_000)
    for _ in range(MOST_REQUESTS):
        params: Params = {"pair": rest_pair(wanted.name), "since": since, "count": TRADES_PER_REQUEST}
        answer = decode(TRADES, (await wanted.ask("/0/public/Trades", params)).body, "Kraken's trades")
        lists = [trades for trades in answer.result.values() if isinstance(trades, list)]
        if answer.error or len(lists) != 1:
            raise HttpFailed(f"Kraken refused: {', '.join(answer.error)[:200]}")
        for each in lists[0]:
            side = 1 if each.side == "b" else -1
            # A thousandth more, because what is a whole millisecond there may be a little less as a float.
            traded_ms = int(each.traded_s * 1000 + 0.001)
            found.append(VenueTrade(each.number, traded_ms, each.price, each.size, side))
        if len(lists[0]) < TRADES_PER_REQUEST:
            return found
        since = str(answer.result.get("last", since))
    raise TooManyTrades(f"more than {MOST_REQUESTS * TRADES_PER_REQUEST} trades were missed")
