"""What an engine says of itself, to the process of this test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from core.clock import now_ms
from market.engine.status import EngineStatus, FeedStatus, InstrumentStatus, encode_status, read_status
from market.runtime import market


def make_feed_status(name: str = "kraken", **facts: Any) -> FeedStatus:
    at_ms = now_ms()
    defaults: dict[str, Any] = {
        "state": "live",
        "since_ms": at_ms - 60_000,
        "why": "",
        "heard_ms": at_ms - 250,
        "lag_ms": 40,
    }
    return FeedStatus(name=name, **(defaults | {"ticks": 1200, "refused": {}} | facts))


def make_instrument_status(symbol: str = "EURUSD", **facts: Any) -> InstrumentStatus:
    defaults: dict[str, Any] = {
        "feed": "kraken",
        "feeds": ("kraken",),
        "switched_ms": None,
        "switches": 0,
        "ticks": 900,
    }
    return InstrumentStatus(symbol=symbol, **(defaults | facts))


def tell(
    feeds: tuple[FeedStatus, ...] = (), instruments: tuple[InstrumentStatus, ...] = (), **facts: Any
) -> None:
    """As over the bus."""
    defaults: dict[str, Any] = {"at_ms": now_ms(), "writer": "host:1:a", "epoch": "e1"}
    status = EngineStatus(feeds=list(feeds), instruments=list(instruments), **(defaults | facts))
    market.status = read_status(encode_status(status))


@pytest.fixture
def untold() -> Iterator[None]:
    """A process that has not heard of an engine, with an empty market; left as it was found."""
    market.status = EngineStatus()
    yield
    market.status = EngineStatus()
    market.prices.clear()
