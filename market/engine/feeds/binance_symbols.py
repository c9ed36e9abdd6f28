"""Which names Binance knows: it acknowledges a subscription to any other too, and then stays silent."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import NamedTuple

import httpx2
import msgspec

from .history.client import HistoryFailed, fetch

PER_REQUEST = 100
TRADING = "TRADING"


class Symbol(msgspec.Struct):
    symbol: str
    status: str = TRADING


class ExchangeInfo(msgspec.Struct):
    symbols: list[Symbol]


EXCHANGE_INFO = msgspec.json.Decoder(ExchangeInfo)


class Listed(NamedTuple):
    unknown: dict[str, str]
    """Of each name that Binance does not have, why it says so."""
    resting: dict[str, str]
    """The status of those that it has and does not trade now."""


async def look_up(client: httpx2.AsyncClient, rest_url: str, names: Iterable[str]) -> Listed:
    """`HistoryFailed` where it cannot be asked."""
    every = sorted(names)
    waiting = [every[begin : begin + PER_REQUEST] for begin in range(0, len(every), PER_REQUEST)]
    listed = Listed({}, {})
    while waiting:
        asked = waiting.pop()
        try:
            known = await _ask(client, rest_url, asked)
        except HistoryFailed as failed:
            if failed.status != HTTPStatus.BAD_REQUEST:
                raise
            # It refuses all for one bad name, without a word on which: that is found by halving.
            if len(asked) == 1:
                listed.unknown[asked[0]] = str(failed)
            else:
                middle = len(asked) // 2
                waiting += [asked[:middle], asked[middle:]]
            continue
        listed.unknown.update({name: "it is not listed" for name in asked if name not in known})
        listed.resting.update({name: status for name, status in known.items() if status != TRADING})
    return listed


async def _ask(client: httpx2.AsyncClient, rest_url: str, names: list[str]) -> dict[str, str]:
    params = {"symbols": msgspec.json.encode(names).decode()}
    answer = await fetch(client, f"{rest_url}/api/v3/exchangeInfo", params)
    try:
        return {one.symbol: one.status for one in EXCHANGE_INFO.decode(answer.body).symbols}
    except ValueError as error:
        raise HistoryFailed(f"Binance's exchange information cannot be read: {error}") from None
