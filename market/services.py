"""The market of this process: what other rooms may ask of it."""

from __future__ import annotations

import time

from django.conf import settings

from accounts.threads import in_thread
from instruments.catalogue import InstrumentFacts, catalogue

from .engine.checkpoints import read_checkpoints
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
        await engine.start(await in_thread(demo_feed), basis="demo")
    else:
        await engine.start(None, basis=settings.CANDLE_PRICE)


def demo_feed() -> DemoFeed:
    """It goes on where the store ends."""
    known_ms = {checkpoint.last.symbol: checkpoint.last.time_ms for checkpoint in read_checkpoints().values()}
    closed_ms = max(last_closed("1m").values(), default=now_ms() - MINUTE_MS)
    return DemoFeed(settings.DEMO_SEED, closed_ms + MINUTE_MS, known_ms)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def quote(symbol: str) -> Quote | None:
    return prices.board.get(symbol)


def state(facts: InstrumentFacts) -> str:
    return prices.board.state(facts, now_ms())


def instruments_quoting() -> int:
    """Instruments that are offered and have a quote."""
    return sum(1 for facts in catalogue.active() if prices.board.get(facts.symbol) is not None)
