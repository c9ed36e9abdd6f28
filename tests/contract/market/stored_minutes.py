"""Stored minutes, and how the tests ask for them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from core.times import MINUTE_MS
from instruments.catalogue import catalogue
from instruments.models import WithheldSource
from market.prices.candles import PriceBar
from market.store import candle_rows
from tests.client import Api
from tests.contract.answers import to_ms

PATH = "/api/market/EURUSD/history"
CSV, ARROW = "text/csv", "application/vnd.apache.arrow.stream"
NOON_MS = to_ms("2020-03-04 12:00")
STORED = 1_205


def minutes(number: int, first: int = 0, source: str = "kraken", from_ms: int = NOON_MS) -> list[PriceBar]:
    """Prices and volumes with and without decimals."""
    candles = []
    for each in range(first, first + number):
        low = round(1.08 + each % 97 / 10_000, 5)
        opened, close, high = (round(low + more, 5) for more in (0.00012, 0.00021, 0.00034))
        opened_ms = from_ms + each * MINUTE_MS
        candles.append(PriceBar(opened_ms, opened, high, low, close, each % 53 / 4, high, low, source))
    return candles


def store(symbol: str, candles: list[PriceBar], timeframe: str = "1m") -> None:
    facts = catalogue.get_any(symbol)
    candle_rows.write_candles((facts.id, timeframe, candle, "bid") for candle in candles)


def ask(shared: Api, query: str = "", accept: str | None = None, **headers: str) -> httpx.Response:
    given = headers if accept is None else {"Accept": accept, **headers}
    return shared.ask(f"{PATH}?{query}", headers=given)


def page(shared: Api, query: str = "") -> dict[str, Any]:
    answer = ask(shared, query)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def times(body: dict[str, Any]) -> list[int]:
    return [to_ms(candle["time"].removesuffix("Z")) for candle in body["ohlcv"]]


def walk(shared: Api, query: str = "") -> list[dict[str, Any]]:
    pages = [page(shared, query)]
    while (cursor := pages[-1]["next"]) is not None:
        pages.append(page(shared, f"{query}&cursor={cursor}"))
    return pages


@contextmanager
def withheld(name: str) -> Iterator[None]:
    source = WithheldSource.objects.create(name=name, why="Its terms.")
    catalogue.load_now()
    yield
    source.delete()
    catalogue.load_now()
