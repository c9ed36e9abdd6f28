"""A venue's history: requests bounded in time and size, with one exception for whatever goes wrong, and bars
that are checked before they count as closed minutes."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from functools import cache
from math import isfinite
from typing import Any, NamedTuple, Protocol, TypeVar

import httpx2
import msgspec

from core.http import BodyRefused, read_raw
from market.engine.admission import TOO_HIGH
from market.prices.candles import MINUTE_MS, PriceBar, interval_start

logger = logging.getLogger(__name__)
TIMEOUT_S = 10.0

# Three days of minutes with bid and ask are a little over one megabyte.
MAX_BYTES = 4_000_000
Params = Mapping[str, str | int]


class HistoryFailed(Exception):
    """The history could not be had; the sentence says why."""

    def __init__(self, why: str, status: int | None = None) -> None:
        super().__init__(why)
        self.status = status
        """What HTTP said, if it answered."""


class VenueAnswer(NamedTuple):
    body: bytes
    sent_ms: int | None
    """By the venue's own clock, which knows better than ours what has closed."""


@cache
def tls() -> ssl.SSLContext:
    """Reading the certificates takes 30 ms, in which no tick is heard: once, and not at each reconnect."""
    return httpx2.create_ssl_context()


def open_client(headers: Mapping[str, str] | None = None) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        headers={"Accept-Encoding": "identity", **(headers or {})},
        timeout=TIMEOUT_S,
        verify=tls(),
    )


async def fetch(
    client: httpx2.AsyncClient, url: str, params: Params, timeout_s: float = TIMEOUT_S
) -> VenueAnswer:
    try:
        # All in all: the client's own limit starts anew with each byte.
        async with asyncio.timeout(timeout_s), client.stream("GET", url, params=params) as response:
            body = await read(response, MAX_BYTES)
    except TimeoutError:
        raise HistoryFailed(f"no whole answer within {timeout_s:g} s") from None
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise HistoryFailed(f"the connection failed ({type(error).__name__})") from None
    if response.status_code != httpx2.codes.OK:
        status = response.status_code
        raise HistoryFailed(f"the answer was {status}{said(response, body)}", status)
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


D = TypeVar("D")


def decode(decoder: msgspec.json.Decoder[D], body: bytes, what: str) -> D:
    try:
        return decoder.decode(body)
    except ValueError as error:
        raise HistoryFailed(f"{what} cannot be read: {error}") from None


class TradeBar(Protocol):
    """A venue's own bar of trades."""

    open: float
    high: float
    low: float
    close: float
    traded: float
    trades: int


def minute_of_trades(opened_ms: int, bar: TradeBar, *, counted: bool) -> PriceBar:
    # Where live volume is the number of ticks, that of trades comes nearest; a size would tower above it.
    volume = float(bar.trades) if counted else bar.traded
    return PriceBar(opened_ms, bar.open, bar.high, bar.low, bar.close, volume, bar.high, bar.low)


async def read(response: httpx2.Response, limit: int) -> bytes:
    try:
        return await read_raw(response, limit)
    except BodyRefused as error:
        raise HistoryFailed(str(error)) from None


def said(response: httpx2.Response, body: bytes) -> str:
    """What an error's body says, on one short line: OANDA's errorMessage, Binance's msg."""
    try:
        error: Any = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return ""
    text = (error.get("errorMessage") or error.get("msg")) if isinstance(error, dict) else None
    if not isinstance(text, str):
        return ""
    # It goes into the log, and nobody knows what an error repeats of what it was sent.
    secret = response.request.headers.get("Authorization", "").removeprefix("Bearer ")
    text = text.replace(secret, "***") if secret else text
    return f": {' '.join(text.split())[:200].rstrip('.')}"


class CheckedMinutes:
    """Takes the bars that open from `start_ms` on and end by `end_ms`, oldest first."""

    def __init__(self, start_ms: int, end_ms: int) -> None:
        self.candles: list[PriceBar] = []
        self.refused = 0
        """Bars that make no sense, came out of order or were not asked for."""
        self._next_ms = start_ms
        self._end_ms = end_ms

    def add(self, bar: PriceBar) -> None:
        if bar.opened_ms == self._end_ms:
            # It may still be forming, which is no fault of the venue.
            return
        is_asked_for = self._next_ms <= bar.opened_ms < self._end_ms and bar.opened_ms % MINUTE_MS == 0
        if is_asked_for and _makes_sense(bar):
            self.candles.append(bar)
            self._next_ms = bar.opened_ms + MINUTE_MS
        else:
            self.refused += 1


def checked(minutes: CheckedMinutes, name: str) -> list[PriceBar]:
    if minutes.refused:
        logger.warning("%s: %d bars of its history make no sense", name, minutes.refused)
    return minutes.candles


def _sent_ms(response: httpx2.Response) -> int | None:
    try:
        return int(parsedate_to_datetime(response.headers.get("Date", "")).timestamp() * 1000)
    except ValueError:
        return None


# Of a longer gap the last three days are filled: that is a weekend and a day more.
LONGEST_MS = 3 * 24 * 60 * MINUTE_MS

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
