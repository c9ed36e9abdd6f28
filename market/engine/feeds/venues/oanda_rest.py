"""OANDA's REST side: credentials, the reasons of a refusal, and bars of the bid, the ask and the mid."""

from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import quote

import httpx2
import msgspec

from core.http import HttpFailed, read_raw, retry_after_s
from core.times import iso_s
from market.prices.candles import PriceBar

from .venue_feed import FeedLost
from .venue_history import MinutesRequest, Params, decode, error_text, fetch
from .venue_quotes import to_ms

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
