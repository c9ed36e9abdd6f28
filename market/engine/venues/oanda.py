"""OANDA v20: one HTTP answer that never ends, with a price or a heartbeat a line; and its REST side for past
minutes."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import quote

import httpx2
import msgspec

from core.http import HttpFailed, open_client, read_raw, retry_after_s
from core.times import epoch_ms, iso_s
from market.engine.feeds.feed import FeedPace
from market.prices.candles import PriceBar
from market.prices.records import Tick

from .time_base import TimeBase
from .venue_feed import FeedLost, Refuse, VenueFeed, VenueLine, not_served
from .venue_history import TIMEOUT_S, MinutesRequest, Params, decode, error_text, fetch
from .venue_quotes import VenueQuotes, to_ms

# OANDA's REST side: credentials, the reasons of a refusal, and bars of the bid, the ask and the mid.
LONGEST_ERROR = 65_536

# A venue that asks for more patience than this is asked again all the same.
LONGEST_WAIT_S = 900
SEE: dict[int, str] = {
    HTTPStatus.BAD_REQUEST: "see OANDA_ACCOUNT and the instruments' sources",
    HTTPStatus.UNAUTHORIZED: "see OANDA_TOKEN and OANDA_ACCOUNT; practice and live have their own addresses",
    HTTPStatus.FORBIDDEN: "see OANDA_TOKEN and OANDA_ACCOUNT",
    HTTPStatus.NOT_FOUND: "see OANDA_ACCOUNT and OANDA_STREAM_URL",
}


class OandaInstrument(msgspec.Struct):
    name: str


class OandaInstruments(msgspec.Struct):
    instruments: list[OandaInstrument]


INSTRUMENTS = msgspec.json.Decoder(OandaInstruments)


class Access(NamedTuple):
    token: str
    account: str

    def check(self) -> None:
        for setting, value in (("OANDA_TOKEN", self.token), ("OANDA_ACCOUNT", self.account)):
            if not value:
                raise FeedLost(f"{setting} is not set; OANDA requires it", is_lasting=True)
            if not (value.isascii() and value.isprintable() and " " not in value):
                raise FeedLost(f"{setting} has a character that cannot be part of it", is_lasting=True)

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}", "Accept-Datetime-Format": "RFC3339"}

    def path(self, below: str) -> str:
        return f"/v3/accounts/{quote(self.account, safe='')}/{below}"

    async def instruments(self, client: httpx2.AsyncClient, rest_url: str) -> set[str]:
        """The names of all that the account may see."""
        answer = await fetch(client, rest_url + self.path("instruments"), {})
        known = decode(INSTRUMENTS, answer.body, "OANDA's instruments")
        return {instrument.name for instrument in known.instruments}


async def refusal(response: httpx2.Response) -> FeedLost:
    status = response.status_code
    try:
        why = f"OANDA answered {status}{error_text(response, await read_raw(response, LONGEST_ERROR))}"
    except HttpFailed:
        why = f"OANDA answered {status} and more than an error needs"
    if see := SEE.get(status):
        why += f"; {see}"
    wait_s = min(retry_after_s(response), LONGEST_WAIT_S)
    return FeedLost(why, is_lasting=response.is_client_error, wait_s=wait_s)


class OandaPrices(msgspec.Struct):
    o: float
    h: float
    l: float  # noqa: E741 - OANDA's name
    c: float


class OandaBar(msgspec.Struct):
    time: str
    complete: bool
    volume: int
    ask: OandaPrices
    bid: OandaPrices | None = None
    mid: OandaPrices | None = None

    def candle(self, price: str, *, counted: bool) -> PriceBar:
        """Its volume is the number of prices, which is no traded size."""
        bar, volume = self.mid if price == "mid" else self.bid, float(self.volume) if counted else 0.0
        if bar is None:
            raise ValueError(f"a candle has no {price}")
        return PriceBar(to_ms(self.time), bar.o, bar.h, bar.l, bar.c, volume, self.ask.h, self.ask.l)


class OandaBars(msgspec.Struct):
    candles: list[OandaBar]


ANSWER = msgspec.json.Decoder(OandaBars, strict=False)


async def oanda_history(wanted: MinutesRequest, price: str = "bid") -> list[PriceBar]:
    """In one request, which may span 5,000 candles: three days have 4,320. `price` is bid or mid."""
    between = {"from": iso_s(wanted.start_ms), "to": iso_s(wanted.end_ms)}
    params: Params = {"price": "MA" if price == "mid" else "BA", "granularity": "M1", **between}
    answer = await wanted.ask(f"/v3/instruments/{quote(wanted.name, safe='')}/candles", params)
    return read_bars(answer.body, price, counted=wanted.counted)


def read_bars(body: bytes, price: str, *, counted: bool) -> list[PriceBar]:
    try:
        return [bar.candle(price, counted=counted) for bar in ANSWER.decode(body).candles if bar.complete]
    except ValueError as error:
        raise HttpFailed(f"OANDA's candles cannot be read: {error}") from None


# Of its live accounts. Those of practice accounts are built in.
LIVE_ADDRESSES = ("https://stream-fxtrade.oanda.com", "https://api-fxtrade.oanda.com")

# A price with its whole depth has some 600 bytes; what goes on much longer is no line of theirs.
LONGEST_LINE = 65_536


class OandaLevel(msgspec.Struct):
    price: float


class OandaMessage(msgspec.Struct):
    type: str
    instrument: str = ""
    time: str = ""
    status: str = "tradeable"
    tradeable: bool = True
    bids: list[OandaLevel] = []
    asks: list[OandaLevel] = []


# Prices are strings.
MESSAGE = msgspec.json.Decoder(OandaMessage, strict=False)


class OandaReader:
    def __init__(self, symbols: Mapping[str, str], refuse: Refuse) -> None:
        self._quotes, self.base = VenueQuotes(symbols, refuse), TimeBase()
        self._quoted: set[str] = set()

    def read(self, raw: bytes | str, received_ms: int) -> list[Tick]:
        """Heartbeats, untradable prices (at a weekend) and half quotes are only signs of life."""
        price = MESSAGE.decode(raw)
        time_ms = to_ms(price.time) if price.time else 0
        # The first line of each is from when its price last changed.
        is_standing = price.type == "PRICE" and price.instrument not in self._quoted
        if time_ms and not is_standing:
            self.base.hear(time_ms, received_ms)
        self._quoted.add(price.instrument)
        is_open = price.tradeable and price.status == "tradeable"
        if price.type != "PRICE" or not (is_open and price.bids and price.asks):
            return []
        # Best first.
        bid, ask = price.bids[0].price, price.asks[0].price
        at_ms = to_ms(price.time)
        return self._quotes.quote(price.instrument, bid, ask, at_ms, is_standing=is_standing)


def dated_ms(response: httpx2.Response) -> int | None:
    """When it was made, in whole seconds."""
    try:
        return epoch_ms(parsedate_to_datetime(response.headers["Date"]))
    except (LookupError, ValueError, OverflowError):
        return None


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


def venue_symbol(symbol: str) -> str:
    """EURUSD is EUR_USD there. What is not two currencies an instrument must name: oanda:DE30_EUR."""
    return f"{symbol[:3]}_{symbol[3:]}" if len(symbol) == 6 and symbol.isalpha() else symbol


class OandaFeed(VenueFeed):
    venue = "OANDA"
    # A heartbeat comes each five seconds.
    quiet_ms = 6_000
    basis = "bid"
    rest_setting = "OANDA_REST_URL"

    def __init__(
        self,
        symbols: Mapping[str, str],
        token: str,
        account: str,
        stream_url: str,
        rest_url: str,
        pace: FeedPace | None = None,
        now_ms: Callable[[], int] | None = None,
        candle_price: str = "bid",
    ) -> None:
        super().__init__(symbols, pace, now_ms)
        self.basis = candle_price
        self._access = Access(token.strip(), account.strip())
        self.secrets = tuple(filter(None, self._access))
        self._stream_url = stream_url.rstrip("/")
        self.rest_url = rest_url.rstrip("/")
        self._unknown: set[str] = set()
        self._asked_ms = 0

    @asynccontextmanager
    async def open(self, refuse: Refuse) -> AsyncIterator[VenueLine]:
        self._access.check()
        with raising_feed_lost(self._stream_url):
            async with open_client(headers=self._access.headers(), timeout=TIMEOUT_S) as self._client:
                async with asyncio.timeout(self.pace.open_s):
                    response = await self._connect(refuse)
                async with aclosing(response), aclosing(self._lines(response)) as lines:
                    reader = OandaReader(self.symbols, refuse)
                    # The stream answers no requests later, so a slow line could not be distinguished from a
                    # clock that is off.
                    if (made_ms := dated_ms(response)) is not None:
                        reader.base.date_answer(self._asked_ms, made_ms)
                    yield VenueLine(lines.__anext__, reader.read, reader.base)

    def client(self) -> httpx2.AsyncClient:
        return self._client

    async def history(self, wanted: MinutesRequest) -> list[PriceBar]:
        return await oanda_history(wanted, self.basis)

    async def _connect(self, refuse: Refuse) -> httpx2.Response:
        response = await self._ask_for_prices()
        if response.status_code == HTTPStatus.BAD_REQUEST and await self._leave_out_unknown(refuse):
            await response.aclose()
            response = await self._ask_for_prices()
        if response.status_code != HTTPStatus.OK:
            async with aclosing(response):
                raise await refusal(response)
        return response

    async def _ask_for_prices(self) -> httpx2.Response:
        names = sorted(set(self.symbols.values()) - self._unknown)
        if not names:
            raise FeedLost("OANDA has none of the instruments; see their sources", is_lasting=True)
        request = self._client.build_request(
            "GET",
            self._stream_url + self._access.path("pricing/stream"),
            params={"instruments": ",".join(names), "snapshot": "true"},
            # It never ends; the listener also watches for silence.
            timeout=None,
        )
        self._asked_ms = self.now_ms()
        return await self._client.send(request, stream=True)

    async def _leave_out_unknown(self, refuse: Refuse) -> bool:
        """OANDA refuses the whole list for one instrument that it does not have, without naming it."""
        try:
            known = await self._access.instruments(self._client, self.rest_url)
        except HttpFailed:
            return False
        unknown = set(self.symbols.values()) - known - self._unknown
        for name in sorted(unknown):
            why = "the account does not have it"
            refuse("unknown_symbol", not_served(name, why, "oanda:EUR_USD"), name)
        self._unknown |= unknown
        return bool(unknown)

    async def _lines(self, response: httpx2.Response) -> AsyncGenerator[bytes, None]:
        lines = Lines()
        # Raw, because nothing compressed was asked for.
        async with aclosing(response.aiter_raw()) as chunks:
            async for chunk in chunks:
                for line in lines.add(chunk):
                    yield line
        raise FeedLost("OANDA ended the stream")


@contextmanager
def raising_feed_lost(url: str) -> Iterator[None]:
    at = f"{url} (OANDA_STREAM_URL)"
    try:
        yield
    except LineTooLong as error:
        raise FeedLost(f"OANDA sends no lines: {error}") from None
    except TimeoutError:
        raise FeedLost(f"{at} did not answer in time") from None
    except httpx2.ConnectError as error:
        raise FeedLost(f"{at} cannot be reached: {error}") from None
    except (httpx2.InvalidURL, httpx2.UnsupportedProtocol):
        raise FeedLost(f"{at} is not an address", is_lasting=True) from None
    except httpx2.HTTPError as error:
        raise FeedLost(f"the connection to OANDA broke off ({type(error).__name__})") from None
