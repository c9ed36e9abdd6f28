"""Binance's REST side: its bars of trades, and the names it knows, as it acknowledges any subscription."""

from collections.abc import Iterable
from http import HTTPStatus
from typing import NamedTuple

import httpx2
import msgspec

from core.http import HttpFailed
from core.times import MINUTE_MS
from market.prices.candles import PriceBar

from .venue_feed import halves, in_batches
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
    """`HttpFailed` where it cannot be asked."""
    waiting = list(in_batches(sorted(names), NAMES_PER_REQUEST))
    listed = BinanceListing({}, {})
    while waiting:
        asked = waiting.pop()
        try:
            known = await _ask_for_names(client, rest_url, asked)
        except HttpFailed as failed:
            if failed.status != HTTPStatus.BAD_REQUEST:
                raise
            # It refuses all for one bad name, without a word on which: that is found by halving.
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
