"""The engine: ticks come in, are checked, shown, folded into candles and kept. It owns the tasks."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Coroutine
from typing import Any, Protocol

from django.db import DatabaseError

from accounts.exceptions import Overloaded
from accounts.threads import in_thread
from instruments.catalogue import InstrumentFacts, catalogue
from market.prices.candles import Closed
from market.prices.market import Prices
from market.prices.ticks import Tick
from market.prices.timeframes import MINUTE_MS, interval_start

from . import store
from .boot import load
from .checks import reason_to_refuse

logger = logging.getLogger(__name__)

CLOCK_S = 0.25
FLUSH_S = 1.0
# More than this waits for the database only when it has been away for hours; then the oldest go.
MAX_PENDING = 200_000


class Feed(Protocol):
    def batches(self) -> AsyncIterator[list[Tick]]: ...


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Engine:
    def __init__(self, prices: Prices) -> None:
        self.prices = prices
        self.refused: Counter[str] = Counter()
        self._last: dict[str, Tick] = {}
        self._open: dict[str, bool] = {}
        self._pending: list[store.Row] = []
        self._quotes: dict[int, Tick] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._basis = "bid"
        self._alive_since_ms = 0

    async def start(self, feed: Feed | None, basis: str) -> None:
        self._basis = basis
        await in_thread(load, self.prices, now_ms())
        self._run(self._keep_time(), "market clock")
        self._run(self._keep_store(), "market store")
        if feed is not None:
            self._alive_since_ms = now_ms()
            self._run(self._listen(feed), "market feed")

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        await self.flush()
        self.prices.clear()
        self._last.clear()
        self._open.clear()

    def accept(self, tick: Tick, at_ms: int) -> str | None:
        """Take a tick, or say why not; the last good value stays then."""
        facts = catalogue.find(tick.symbol)
        reason = (
            "unknown_symbol" if facts is None else reason_to_refuse(tick, self._last.get(tick.symbol), at_ms)
        )
        if facts is None or reason is not None:
            self.refused[reason or ""] += 1
            return reason
        self._last[tick.symbol] = tick
        self._quotes[facts.id] = tick
        self._keep(facts, self.prices.take(tick, facts))
        return None

    def keep_time(self, at_ms: int) -> None:
        """Close what has ended, though no tick came to say so."""
        for facts in catalogue.active():
            history = self.prices.history(facts)
            is_open = facts.hours.is_open(at_ms)
            if self._open.get(facts.symbol) and not is_open:
                self._keep(facts, history.close_all())
            self._open[facts.symbol] = is_open
            self._keep(facts, history.close_until(at_ms))
            if is_open:
                self._fill_last_minute(facts, at_ms)

    def _fill_last_minute(self, facts: InstrumentFacts, at_ms: int) -> None:
        minute_ms = interval_start(at_ms, MINUTE_MS) - MINUTE_MS
        history = self.prices.history(facts)
        was_alive = 0 < self._alive_since_ms <= minute_ms and facts.hours.is_open(minute_ms)
        if was_alive and (history.last_closed_ms("1m") or 0) < minute_ms:
            self._keep(facts, history.fill(minute_ms))

    async def flush(self) -> None:
        """Write what is waiting; what could not be written waits for the next time."""
        rows, self._pending = self._pending, []
        quotes, self._quotes = self._quotes, {}
        try:
            if rows:
                await in_thread(store.write_candles, rows, self._basis)
            if quotes:
                await in_thread(store.write_quotes, list(quotes.items()))
        except (DatabaseError, Overloaded) as error:
            logger.warning("%d candles wait for the database: %s", len(rows), error)
            self._pending = [*rows, *self._pending][-MAX_PENDING:]
            self._quotes = {**quotes, **self._quotes}

    def _keep(self, facts: InstrumentFacts, closed: list[Closed]) -> None:
        self._pending += [(facts.id, timeframe, candle) for timeframe, candle in closed]

    async def _listen(self, feed: Feed) -> None:
        while True:
            try:
                async for batch in feed.batches():
                    at_ms = now_ms()
                    for tick in batch:
                        self.accept(tick, at_ms)
            except Exception:  # noqa: BLE001 - the top of a task: a broken feed is logged and started again
                logger.exception("The feed broke and starts again")
                await asyncio.sleep(1)

    async def _keep_time(self) -> None:
        while True:
            self.keep_time(now_ms())
            await asyncio.sleep(CLOCK_S)

    async def _keep_store(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_S)
            await self.flush()

    def _run(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        task.add_done_callback(_log_end)
        self._tasks.append(task)


def _log_end(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error("The task %s ended", task.get_name(), exc_info=error)
