"""The market of this process: what other rooms may ask of it."""

from __future__ import annotations

import time

from django.conf import settings

from accounts.threads import in_thread
from instruments.catalogue import InstrumentFacts, catalogue

from .engine.engine import Engine
from .engine.feeds.demo import DemoFeed
from .engine.store import last_closed
from .prices.board import Quote
from .prices.market import Prices
from .prices.timeframes import MINUTE_MS

prices = Prices(settings.CANDLE_PRICE)
engine = Engine(prices)


async def start() -> None:
    catalogue.state_of = state
    if settings.DEMO:
        stored = await in_thread(last_closed, "1m")
        since_ms = max(stored.values(), default=now_ms() - MINUTE_MS) + MINUTE_MS
        await engine.start(DemoFeed(settings.DEMO_SEED, since_ms), basis="demo")
    else:
        await engine.start(None, basis=settings.CANDLE_PRICE)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def quote(symbol: str) -> Quote | None:
    return prices.board.get(symbol)


def state(facts: InstrumentFacts) -> str:
    return prices.board.state(facts, now_ms())


def instruments_quoting() -> int:
    """Instruments that are offered and have a quote."""
    return sum(1 for facts in catalogue.active() if prices.board.get(facts.symbol) is not None)
