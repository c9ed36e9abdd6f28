"""A venue's history: what it is asked for, and bars that are checked before they count as closed minutes."""

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Any, NamedTuple, Protocol, TypeVar

import httpx2
import msgspec

from core.http import HttpFailed, bounded, quoted, request
from core.times import MINUTE_MS, epoch_ms
from market.engine.admission import TOO_HIGH
from market.prices.candles import DAY_MS, PriceBar, interval_start
from market.prices.records import Tick

TIMEOUT_S = 10.0

# Three days of minutes with bid and ask are a little over one megabyte.
MAX_BYTES = 4_000_000
Params = Mapping[str, str | int]


class VenueAnswer(NamedTuple):
    body: bytes
    sent_ms: int | None
    """By the venue's own clock, which knows better than ours what has closed."""


async def fetch(
    client: httpx2.AsyncClient, url: str, params: Params, timeout_s: float = TIMEOUT_S
) -> VenueAnswer:
    async with bounded(timeout_s):
        response, body = await request(client, "GET", url, most=MAX_BYTES, params=params)
    if response.status_code != httpx2.codes.OK:
        status = response.status_code
        raise HttpFailed(f"the answer was {status}{error_text(response, body)}", status)
    return VenueAnswer(body, _sent_ms(response))


class MinutesRequest(NamedTuple):
    """Closed minutes, which a venue is asked for by its own name of the instrument."""

    client: httpx2.AsyncClient
    rest_url: str
    name: str
    start_ms: int
    end_ms: int
    counted: bool
    """Whether the live volume is a number of ticks."""

    async def ask(self, path: str, params: Params) -> VenueAnswer:
        return await fetch(self.client, self.rest_url + path, params)


class TradesRequest(NamedTuple):
    """Trades one by one, since a moment."""

    client: httpx2.AsyncClient
    rest_url: str
    name: str
    since_ms: int
    known: int
    """Those with higher numbers, if it is not 0."""

    async def ask(self, path: str, params: Params) -> VenueAnswer:
        return await fetch(self.client, self.rest_url + path, params)


class VenueTrade(NamedTuple):
    number: int
    time_ms: int
    price: float
    size: float
    side: int

    def tick(self, symbol: str) -> Tick:
        # The bid and ask of that time are unknown.
        return Tick(
            symbol, self.price, self.price, self.time_ms, self.size, self.side, self.price, self.number
        )


# A venue sends a thousand at once; if more than these were missed, the minutes of its history serve instead.
TRADES_PER_REQUEST, MOST_REQUESTS = 1_000, 5


class TooManyTrades(HttpFailed):
    """More than are asked for one by one."""


def sound_trades(trades: Iterable[VenueTrade], wanted: TradesRequest) -> list[VenueTrade]:
    """In the order of their numbers, each once, and none that makes no sense."""
    found = {trade.number: trade for trade in trades if trade.number > wanted.known and _is_trade(trade)}
    ordered = [found[number] for number in sorted(found)]
    return [trade for trade in ordered if trade.time_ms >= wanted.since_ms]


def _is_trade(trade: VenueTrade) -> bool:
    return (
        isfinite(trade.price)
        and 0 < trade.price < TOO_HIGH
        and isfinite(trade.size)
        and 0 < trade.size < TOO_MUCH
    )


class TradesBefore:
    """The last trades of an instrument that a venue sends when a connection begins, up to its first live
    one."""

    def __init__(self) -> None:
        self._trades: deque[VenueTrade] = deque(maxlen=TRADES_PER_REQUEST)
        self._was_told = asyncio.Event()

    def tell(self, trade: VenueTrade) -> None:
        self._trades.append(trade)
        self._was_told.set()

    async def all_wanted(self, wanted: TradesRequest) -> list[VenueTrade]:
        """Once the venue has sent them; empty unless they go back far enough. They are numbered without
        holes."""
        await self._was_told.wait()
        first = min(self._trades)
        is_enough = first.number <= wanted.known + 1 or first.time_ms < wanted.since_ms
        return list(self._trades) if is_enough else []


D = TypeVar("D")


def decode(decoder: msgspec.json.Decoder[D], body: bytes, what: str) -> D:
    try:
        return decoder.decode(body)
    except ValueError as error:
        raise HttpFailed(f"{what} cannot be read: {error}") from None


class TradeBar(Protocol):
    """A venue's own bar of trades."""

    @property
    def opened_ms(self) -> int: ...

    open: float
    high: float
    low: float
    close: float
    traded: float
    trades: int


def minute_of_trades(bar: TradeBar, *, counted: bool) -> PriceBar:
    # Where live volume is the number of ticks, that of trades comes nearest; a size would tower above it.
    volume = float(bar.trades) if counted else bar.traded
    return PriceBar(bar.opened_ms, bar.open, bar.high, bar.low, bar.close, volume, bar.high, bar.low)


def error_text(response: httpx2.Response, body: bytes) -> str:
    """What an error's body says, on one short line: OANDA's errorMessage, Binance's msg."""
    try:
        error: Any = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return ""
    text = (error.get("errorMessage") or error.get("msg")) if isinstance(error, dict) else None
    return quoted(text, response.request.headers.get("Authorization", "").removeprefix("Bearer "))


def sound_minutes(bars: Iterable[PriceBar], start_ms: int, end_ms: int) -> tuple[list[PriceBar], int]:
    """The bars that open from `start_ms` on and end by `end_ms`, oldest first, and how many others make no
    sense, came out of order or were not asked for."""
    sound, refused = list[PriceBar](), 0
    for bar in bars:
        is_asked_for = start_ms <= bar.opened_ms < end_ms and bar.opened_ms % MINUTE_MS == 0
        if is_asked_for and _makes_sense(bar):
            sound.append(bar)
            start_ms = bar.opened_ms + MINUTE_MS
        elif bar.opened_ms != end_ms:
            # At the end one may still be forming, which is no fault of the venue.
            refused += 1
    return sound, refused


def _sent_ms(response: httpx2.Response) -> int | None:
    try:
        return epoch_ms(parsedate_to_datetime(response.headers.get("Date", "")))
    except ValueError:
        return None


# Of a longer gap only this is filled: a weekend and a day more. The rest is for an import.
LONGEST_MS = 3 * DAY_MS

# A day of such minutes fits the sixteen digits that the database has.
TOO_MUCH = 1e12


def whole_minutes(start_ms: int, end_ms: int) -> tuple[int, int]:
    """What to ask for: minutes that have ended, none from longer ago than we fill."""
    end_ms = interval_start(end_ms, MINUTE_MS)
    first_ms = interval_start(start_ms + MINUTE_MS - 1, MINUTE_MS)
    return max(first_ms, end_ms - LONGEST_MS), end_ms


def _makes_sense(bar: PriceBar) -> bool:
    numbers = bar.open, bar.high, bar.low, bar.close, bar.ask_high, bar.ask_low, bar.volume
    return (
        all(isfinite(number) for number in numbers)
        and 0 < bar.low <= min(bar.open, bar.close)
        and max(bar.open, bar.close) <= bar.high <= bar.ask_high < TOO_HIGH
        and bar.low <= bar.ask_low <= bar.ask_high
        and 0 <= bar.volume < TOO_MUCH
    )
