"""Binance's market streams, with the best bid and ask, numbered but not timed, and trades by one taker's
order; and its REST side for what was missed."""

import asyncio
import logging
import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Annotated, NamedTuple

import httpx2
import msgspec

from core.http import HttpFailed
from core.times import MINUTE_MS
from market.prices.candles import PriceBar
from market.prices.records import Tick

from .venue_feed import (
    FeedLost,
    MessageReader,
    Refuse,
    SendToVenue,
    WebSocketFeed,
    halves,
    in_batches,
    not_served,
)
from .venue_history import (
    MOST_REQUESTS,
    TRADES_PER_REQUEST,
    MinutesRequest,
    Params,
    TooManyTrades,
    TradesRequest,
    VenueAnswer,
    VenueTrade,
    decode,
    fetch,
    minute_of_trades,
)

# Binance's REST side: its bars of trades, and the names it knows, as it acknowledges any subscription.
NAMES_PER_REQUEST = 100
TRADING = "TRADING"


class BinanceSymbol(msgspec.Struct):
    symbol: str
    status: str = TRADING


class ExchangeInfo(msgspec.Struct):
    symbols: list[BinanceSymbol]


EXCHANGE_INFO = msgspec.json.Decoder(ExchangeInfo)


class BinanceListing(NamedTuple):
    unknown: dict[str, str]
    """Of each name that Binance does not have, why it says so."""
    resting: dict[str, str]
    """The status of those that it has and does not trade now."""


async def look_up(client: httpx2.AsyncClient, rest_url: str, names: Iterable[str]) -> BinanceListing:
    """Raises HttpFailed if the venue cannot be reached."""
    waiting = list(in_batches(sorted(names), NAMES_PER_REQUEST))
    listed = BinanceListing({}, {})
    while waiting:
        asked = waiting.pop()
        try:
            known = await _ask_for_names(client, rest_url, asked)
        except HttpFailed as failed:
            if failed.status != HTTPStatus.BAD_REQUEST:
                raise
            # Binance refuses the whole list for one unknown name without naming it; halving the list finds
            # it.
            if len(asked) == 1:
                listed.unknown[asked[0]] = str(failed)
            else:
                waiting += halves(asked)
            continue
        listed.unknown.update({name: "it is not listed" for name in asked if name not in known})
        listed.resting.update({name: status for name, status in known.items() if status != TRADING})
    return listed


async def _ask_for_names(client: httpx2.AsyncClient, rest_url: str, names: list[str]) -> dict[str, str]:
    params = {"symbols": msgspec.json.encode(names).decode()}
    answer = await fetch(client, f"{rest_url}/api/v3/exchangeInfo", params)
    known = decode(EXCHANGE_INFO, answer.body, "Binance's exchange information")
    return {one.symbol: one.status for one in known.symbols}


BARS_PER_REQUEST = 1000


class Kline(msgspec.Struct, array_like=True):
    opened_ms: int
    open: float
    high: float
    low: float
    close: float
    traded: float
    ended_ms: int
    quote_traded: float
    trades: int


KLINES = msgspec.json.Decoder(list[Kline], strict=False)


async def binance_history(wanted: MinutesRequest) -> list[PriceBar]:
    minutes: list[PriceBar] = []
    # Windows of equal length, so that no answer decides how often we ask.
    span_ms = BARS_PER_REQUEST * MINUTE_MS
    for begin_ms in range(wanted.start_ms, wanted.end_ms, span_ms):
        window = {"startTime": begin_ms, "endTime": min(begin_ms + span_ms, wanted.end_ms) - 1}
        params: Params = {"symbol": wanted.name, "interval": "1m", "limit": BARS_PER_REQUEST, **window}
        minutes += read_klines(await wanted.ask("/api/v3/klines", params), counted=wanted.counted)
    return minutes


def read_klines(answer: VenueAnswer, *, counted: bool) -> list[PriceBar]:
    klines, sent_ms = decode(KLINES, answer.body, "Binance's klines"), answer.sent_ms
    # Nothing marks the running minute. Where our clock is fast, only Binance's own knows which it is.
    over = [each for each in klines if sent_ms is None or each.opened_ms + MINUTE_MS <= sent_ms]
    return [minute_of_trades(kline, counted=counted) for kline in over]


class OldTrade(msgspec.Struct):
    number: int = msgspec.field(name="a")
    price: str = msgspec.field(name="p")
    size: str = msgspec.field(name="q")
    traded_ms: int = msgspec.field(name="T")
    is_buyer_maker: bool = msgspec.field(name="m")


OLD_TRADES = msgspec.json.Decoder(list[OldTrade])


async def binance_trades(wanted: TradesRequest) -> list[VenueTrade]:
    """All until now, or TooManyTrades."""
    found = list[VenueTrade]()
    begin: Params = {"fromId": wanted.known + 1} if wanted.known else {"startTime": wanted.since_ms}
    for _ in range(MOST_REQUESTS):
        params: Params = {"symbol": wanted.name, "limit": TRADES_PER_REQUEST, **begin}
        page = decode(OLD_TRADES, (await wanted.ask("/api/v3/aggTrades", params)).body, "Binance's trades")
        for each in page:
            side = -1 if each.is_buyer_maker else 1
            found.append(VenueTrade(each.number, each.traded_ms, float(each.price), float(each.size), side))
        if len(page) < TRADES_PER_REQUEST:
            return found
        begin = {"fromId": page[-1].number + 1}
    raise TooManyTrades(f"more than {MOST_REQUESTS * TRADES_PER_REQUEST} trades were missed")


logger = logging.getLogger(__name__)
KINDS = ("bookTicker", "aggTrade")

# Quotes have no time. This stream sends one each second, even without trades.
CLOCK = "btcusdt@miniTicker"
ASK_FOR_CLOCK = b'{"method":"SUBSCRIBE","params":["%s"],"id":0}' % CLOCK.encode()

# A connection carries 1,024 streams, and a symbol takes two.
MOST_SYMBOLS = 1023 // len(KINDS)
PER_MESSAGE = 100
PROBE_ID = 0
PROBE = b'{"method":"LIST_SUBSCRIPTIONS","id":0}'
Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class BinanceRefusal(msgspec.Struct):
    msg: str = ""


class BinanceMessage(msgspec.Struct):
    stream: str = ""
    data: msgspec.Raw = msgspec.Raw(b"{}")
    id: int | None = None
    error: BinanceRefusal | None = None
    code: int | None = None
    msg: str = ""
    event: str = msgspec.field(name="e", default="")


class BookTicker(msgspec.Struct):
    number: Number = msgspec.field(name="u")
    symbol: str = msgspec.field(name="s")
    bid: str = msgspec.field(name="b")
    ask: str = msgspec.field(name="a")


class AggTrade(msgspec.Struct):
    event_ms: Number = msgspec.field(name="E")
    number: Number = msgspec.field(name="a")
    symbol: str = msgspec.field(name="s")
    price: str = msgspec.field(name="p")
    size: str = msgspec.field(name="q")
    traded_ms: Number = msgspec.field(name="T")
    is_buyer_maker: bool = msgspec.field(name="m")


class BinanceEvent(msgspec.Struct):
    event: str = msgspec.field(name="e", default="")
    event_ms: Number = msgspec.field(name="E", default=0)


MESSAGE = msgspec.json.Decoder(BinanceMessage)
BOOK_TICKER = msgspec.json.Decoder(BookTicker)
AGG_TRADE = msgspec.json.Decoder(AggTrade)
EVENT = msgspec.json.Decoder(BinanceEvent)


# Dollars of other makers, behind the three letters that a coin has at least.
OTHER_DOLLARS = re.compile(r".{3,}(?:BUSD|FDUSD)")


def venue_symbol(symbol: str) -> str:
    """Dollars are tethers there: BTCUSD is BTCUSDT, but OMGBUSD is traded for another dollar."""
    is_other = OTHER_DOLLARS.fullmatch(symbol) and symbol != "SHIBUSD"
    return f"{symbol}T" if symbol.endswith("USD") and not is_other else symbol


class BinanceReader(MessageReader):
    def __init__(self, symbols: Mapping[str, str], refuse: Refuse, say: SendToVenue) -> None:
        super().__init__(symbols, refuse, say)
        self.names, left_out = self.names[:MOST_SYMBOLS], self.names[MOST_SYMBOLS:]
        self._asked: dict[int, list[str]] = {}
        """The names of each request, until it is answered."""
        self._last_id = PROBE_ID
        for name in left_out:
            refuse("unknown_symbol", f"{name} is left out: a connection carries {MOST_SYMBOLS} symbols", name)

    def subscribe(self) -> None:
        for names in in_batches(self.names, PER_MESSAGE):
            self._ask(names)
        # Last: once it tells the time, nothing of the others is missed any more.
        self.say(ASK_FOR_CLOCK)

    def probe(self) -> None:
        self.say(PROBE)

    def read_message(self, raw: bytes | str, received_ms: int) -> list[Tick]:
        message = MESSAGE.decode(raw)
        kind = message.stream.rpartition("@")[2]
        if kind == "bookTicker":
            book, dated_ms = BOOK_TICKER.decode(message.data), self.date(received_ms)
            return self.quotes.quote(book.symbol, float(book.bid), float(book.ask), dated_ms, book.number)
        if kind == "aggTrade":
            trade = AGG_TRADE.decode(message.data)
            self.base.hear(trade.event_ms, received_ms)
            side = -1 if trade.is_buyer_maker else 1
            price, size = float(trade.price), float(trade.size)
            return self.quotes.trade(trade.symbol, price, size, side, trade.traded_ms, trade.number)
        if message.stream == CLOCK:
            self.base.hear(EVENT.decode(message.data).event_ms, received_ms)
        else:
            self._read_answer(message)
        return []

    def _read_answer(self, message: BinanceMessage) -> None:
        if "serverShutdown" in (message.event, EVENT.decode(message.data).event):
            raise FeedLost("Binance shuts this server down")
        if message.code is not None or message.error is not None:
            self._read_refusal(message)
        elif message.id is not None:
            self._asked.pop(message.id, None)
            if message.id == PROBE_ID:
                self.base.answer()
        elif not (message.stream or message.event):
            raise ValueError("neither a stream nor an answer")

    def _read_refusal(self, message: BinanceMessage) -> None:
        """A request is refused as a whole for one bad name, which is found by halving."""
        why = (message.error.msg if message.error else message.msg)[:200]
        names = self._asked.pop(message.id or PROBE_ID, None)
        if names is None:
            raise ValueError(f"what was refused? {why}")
        if len(names) == 1:
            self.refuse("unknown_symbol", not_served(names[0], why, "binance:BTCUSDT"), names[0])
            return
        for half in halves(names):
            self._ask(half)

    def _ask(self, names: list[str]) -> None:
        self._last_id += 1
        self._asked[self._last_id] = names
        streams = [f"{name.lower()}@{kind}" for name in names for kind in KINDS]
        self.say(msgspec.json.encode({"method": "SUBSCRIBE", "params": streams, "id": self._last_id}))


class BinanceFeed(WebSocketFeed):
    venue = "Binance"
    url_setting, rest_setting = "BINANCE_WS_URL", "BINANCE_REST_URL"
    # Here each message says which stream it belongs to.
    path = "/stream"
    reader = BinanceReader

    async def history(self, wanted: MinutesRequest) -> list[PriceBar]:
        return await binance_history(wanted)

    async def trades(self, wanted: TradesRequest) -> list[VenueTrade]:
        return await binance_trades(wanted)

    async def served(self, refuse: Refuse) -> Mapping[str, str]:
        names = set(self.symbols.values())
        try:
            async with asyncio.timeout(self.pace.history_s):
                listed = await look_up(self.client(), self.rest_url, names)
        except (HttpFailed, TimeoutError) as failed:
            at = f"{self.rest_url} ({self.rest_setting})"
            why = str(failed) or f"not within {self.pace.history_s:g} s"
            logger.warning("Binance: it is unknown whether it has all instruments, as %s failed: %s", at, why)
            return self.symbols
        for name, why in listed.unknown.items():
            refuse("unknown_symbol", not_served(name, why, "binance:BTCUSDT"), name)
        for name, status in listed.resting.items():
            why = f"{name} is listed, but not traded there now: its status is {status}"
            refuse("not_traded", why, name)
        if names <= listed.unknown.keys():
            raise FeedLost("Binance has none of the instruments; see their sources", is_lasting=True)
        return {ours: name for ours, name in self.symbols.items() if name not in listed.unknown}
