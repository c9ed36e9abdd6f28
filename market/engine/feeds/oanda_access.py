"""Who asks OANDA, and why it does not answer as hoped."""

from __future__ import annotations

from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import quote

import httpx2
import msgspec

from .base import Lost
from .history.client import HistoryFailed, fetch, read, said

LONGEST_ERROR = 65_536
# A venue that asks for more patience than this is asked again all the same.
LONGEST_WAIT_S = 900
SEE: dict[int, str] = {
    HTTPStatus.BAD_REQUEST: "see OANDA_ACCOUNT and the instruments' sources",
    HTTPStatus.UNAUTHORIZED: "see OANDA_TOKEN and OANDA_ACCOUNT; practice and live have their own addresses",
    HTTPStatus.FORBIDDEN: "see OANDA_TOKEN and OANDA_ACCOUNT",
    HTTPStatus.NOT_FOUND: "see OANDA_ACCOUNT and OANDA_STREAM_URL",
}


class Instrument(msgspec.Struct):
    name: str


class Instruments(msgspec.Struct):
    instruments: list[Instrument]


INSTRUMENTS = msgspec.json.Decoder(Instruments)


class Access(NamedTuple):
    token: str
    account: str

    def check(self) -> None:
        for setting, value in (("OANDA_TOKEN", self.token), ("OANDA_ACCOUNT", self.account)):
            if not value:
                raise Lost(f"{setting} is not set; OANDA answers nobody without it", is_lasting=True)
            if not (value.isascii() and value.isprintable() and " " not in value):
                raise Lost(f"{setting} has a character that cannot be part of it", is_lasting=True)

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}", "Accept-Datetime-Format": "RFC3339"}

    def path(self, below: str) -> str:
        return f"/v3/accounts/{quote(self.account, safe='')}/{below}"

    async def instruments(self, client: httpx2.AsyncClient, rest_url: str) -> set[str]:
        """The names of all that the account may see."""
        answer = await fetch(client, rest_url + self.path("instruments"), {})
        try:
            return {instrument.name for instrument in INSTRUMENTS.decode(answer.body).instruments}
        except ValueError as error:
            raise HistoryFailed(f"OANDA's instruments cannot be read: {error}") from None


async def refusal(response: httpx2.Response) -> Lost:
    status = response.status_code
    try:
        why = f"OANDA answered {status}{said(response, await read(response, LONGEST_ERROR))}"
    except HistoryFailed:
        why = f"OANDA answered {status} and more than an error needs"
    is_lasting = HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR
    see = SEE.get(status)
    return Lost(f"{why}; {see}" if see else why, is_lasting=is_lasting, wait_s=_retry_after(response))


def _retry_after(response: httpx2.Response) -> float:
    text = response.headers.get("Retry-After", "")
    # Where it is a date, the longest of our own waits does.
    return min(float(text), LONGEST_WAIT_S) if text.isascii() and text.isdigit() else 0.0
