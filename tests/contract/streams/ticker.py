"""Ticks for the service under test, by the engine of its own or, over Redis, by one beside it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings

from core import clock
from core.times import MINUTE_MS
from market import runtime as market
from market.engine.bus.redis_bus import RedisBus
from market.engine.engine import Engine
from market.engine.runner import Runner
from market.prices.quotes import Prices
from market.prices.records import AnyRecord, Tick
from market.streams import market_streams
from tests.client import Server
from tests.market.running import no_feed
from tests.patience import PATIENCE_S

_numbers = itertools.count(1)


class Ticker:
    def __init__(self, server: Server, runner: Runner) -> None:
        self.server, self.runner = server, runner

    def __call__(self, symbol: str, count: int = 1) -> list[Tick]:
        """That many ticks in one turn of the loop, each of another price; the service has heard them then."""
        ticks = [make_tick(symbol) for _ in range(count)]
        self.server.run(self.push(ticks))
        self.server.run(until_heard(ticks[-1]))
        return ticks

    def hasty(self, symbols: list[str]) -> None:
        """One tick after the other, which may still be under way."""
        for symbol in symbols:
            self.server.run(self.push([make_tick(symbol)]))

    def publish(self, record: AnyRecord) -> None:
        """As if the engine had decided it."""

        async def publish() -> None:
            self.runner.bus.publish([record])

        self.server.run(publish())

    def at(self, symbol: str, *times_ms: int) -> list[Tick]:
        """Ticks that came at these times, in one turn of the loop. A later minute closes the one before."""
        ticks = [make_tick(symbol, time_ms) for time_ms in times_ms]

        async def take() -> None:
            taken = [self.runner.engine.accept(tick, tick.time_ms, "push") for tick in ticks]
            assert taken == [None] * len(ticks)
            self.runner.publish()

        self.server.run(take())
        self.server.run(until_heard(ticks[-1]))
        return ticks

    def past_a_minute(self, symbol: str) -> None:
        """Something for each stream: of the second tick an order flow, of the third a closed minute."""
        now_ms = clock.now_ms()
        self.at(symbol, now_ms - MINUTE_MS - 1, now_ms - MINUTE_MS, now_ms)

    async def push(self, ticks: list[Tick]) -> None:
        assert self.runner.push("push", ticks) == [None] * len(ticks)


async def until_heard(tick: Tick) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while (quote := market.quote(tick.symbol)) is None or quote.bid != tick.bid:  # noqa: ASYNC110
            await asyncio.sleep(0.001)


def make_tick(symbol: str, time_ms: int | None = None) -> Tick:
    bid = round(1 + next(_numbers) / 100_000, 5)
    return Tick(symbol, bid, round(bid + 0.0002, 5), clock.now_ms() if time_ms is None else time_ms)


@contextmanager
def ticking(server: Server) -> Iterator[Ticker]:
    if not settings.REDIS_URL:
        assert market.market.runner is not None
        yield Ticker(server, market.market.runner)
        return
    runner = Runner(Engine(Prices("bid")), no_feed, RedisBus(settings.REDIS_URL))
    server.run(start(runner))
    yield Ticker(server, runner)
    server.run(runner.stop())


async def start(runner: Runner) -> None:
    """Until the service follows it, and tells its clients no more of that: starting may take longer than a
    silence may."""
    await runner.writer.wait_for_lease()
    await runner.start()
    epoch = runner.bus.journal_position.epoch
    async with asyncio.timeout(PATIENCE_S):
        while not market.is_heard() or market_streams.prices.recent.epoch != epoch:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
