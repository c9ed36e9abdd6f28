"""The engine: ticks come in, are checked, shown, folded into candles and kept. It owns the tasks."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Protocol

import msgspec
from django.db import Error

from accounts.exceptions import Overloaded
from accounts.threads import in_thread
from instruments.catalogue import InstrumentFacts, catalogue
from market.prices.candles import Closed
from market.prices.market import Prices
from market.prices.ticks import Tick
from market.prices.timeframes import MINUTE_MS, interval_start

from . import checkpoints, store
from .boot import load
from .checks import reason_to_refuse
from .source import Source

logger = logging.getLogger(__name__)

CLOCK_S = 0.25
FLUSH_S = 1.0
RESTART_S = 1.0
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
        self.source = Source()
        self._last: dict[str, Tick] = {}
        self._open: dict[str, bool] = {}
        self._passed_ms: dict[str, int] = {}
        """The minute up to which an instrument has its flat candles."""
        self._pending: list[store.Row] = []
        self._changed: dict[str, InstrumentFacts] = {}
        """Instruments that took a tick since the last checkpoint."""
        self._tasks: list[asyncio.Task[None]] = []
        self._basis = "bid"

    async def start(self, feed: Feed | None, basis: str) -> None:
        self._basis = basis
        self._last = await in_thread(load, self.prices)
        self._run(self._keep_time, CLOCK_S, "market clock")
        self._run(self.flush, FLUSH_S, "market store")
        if feed is not None:
            self._run(partial(self._listen, feed), RESTART_S, "market feed")

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        await self.flush()
        self.prices.clear()
        self._last.clear()
        self._open.clear()
        self._changed.clear()
        self._passed_ms.clear()

    def take(self, batch: list[Tick], at_ms: int) -> None:
        """What the source sent; an empty batch says that it is alive."""
        self.source.heard(at_ms)
        for tick in batch:
            self.accept(tick, at_ms)

    def accept(self, tick: Tick, at_ms: int) -> str | None:
        """Take a tick, or say why not; the last good value stays then."""
        facts = catalogue.find(tick.symbol)
        reason = "unknown_symbol" if facts is None else self._reason_to_refuse(tick, facts, at_ms)
        if facts is None or reason is not None:
            self.refused[reason or ""] += 1
            return reason
        self._last[tick.symbol] = tick
        self._changed[tick.symbol] = facts
        self._pass_time(facts, tick.time_ms)
        self._keep(facts, self.prices.take(tick, facts))
        return None

    def keep_time(self, at_ms: int) -> None:
        """Close what has ended, though no tick came to say so."""
        for facts in catalogue.all():
            history = self.prices.history(facts)
            self._pass_time(facts, at_ms)
            self._keep(facts, history.close_until(at_ms))
            is_open = facts.active and facts.hours.is_open(at_ms)
            if self._open.get(facts.symbol) and not is_open:
                self._keep(facts, history.close_all())
            self._open[facts.symbol] = is_open

    def _pass_time(self, facts: InstrumentFacts, at_ms: int) -> None:
        """A minute that went by without a tick while the source was alive is flat."""
        this_minute_ms = interval_start(at_ms, MINUTE_MS)
        passed_ms = self._passed_ms.setdefault(facts.symbol, this_minute_ms)
        if passed_ms >= this_minute_ms:
            return
        self._passed_ms[facts.symbol] = this_minute_ms
        history = self.prices.history(facts)
        for minute_ms in range(passed_ms, this_minute_ms, MINUTE_MS):
            was_alive = self.source.was_alive(minute_ms, minute_ms + MINUTE_MS)
            if was_alive and facts.active and facts.hours.is_open(minute_ms):
                # Before the minute and not after: what it belongs to must not be closed without it.
                self._keep(facts, history.close_until(minute_ms))
                self._keep(facts, history.fill(minute_ms))

    async def flush(self) -> None:
        """Write what is waiting; what could not be written waits for the next time."""
        rows, self._pending = self._pending, []
        changed, self._changed = self._changed, {}
        if not rows and not changed:
            return
        is_written = False
        try:
            await in_thread(checkpoints.write, rows, self._checkpoints(changed))
            is_written = True
        except (Error, Overloaded) as error:
            logger.warning("%d candles wait for the database: %s", len(rows), error)
        finally:
            # Also when this is cancelled: to write the same again changes nothing.
            if not is_written:
                self._put_back(rows, changed)

    def _reason_to_refuse(self, tick: Tick, facts: InstrumentFacts, at_ms: int) -> str | None:
        last_closed_ms = self.prices.history(facts).last_closed_ms("1m")
        return reason_to_refuse(tick, self._last.get(tick.symbol), last_closed_ms, facts, at_ms)

    def _checkpoints(self, changed: dict[str, InstrumentFacts]) -> dict[int, checkpoints.Checkpoint]:
        """Copies, because they are read in a thread while the candles go on forming."""
        made = {}
        for symbol, facts in changed.items():
            minute = self.prices.history(facts).builder.forming("1m")
            copied = None if minute is None else msgspec.structs.replace(minute)
            made[facts.id] = checkpoints.Checkpoint(self._last[symbol], copied)
        return made

    def _put_back(self, rows: list[store.Row], changed: dict[str, InstrumentFacts]) -> None:
        waiting = [*rows, *self._pending]
        if len(waiting) > MAX_PENDING:
            logger.error("%d candles are lost: the database was away too long", len(waiting) - MAX_PENDING)
        self._pending = waiting[-MAX_PENDING:]
        self._changed = changed | self._changed

    def _keep(self, facts: InstrumentFacts, closed: list[Closed]) -> None:
        self._pending += [(facts.id, timeframe, candle, self._basis) for timeframe, candle in closed]

    async def _listen(self, feed: Feed) -> None:
        try:
            async for batch in feed.batches():
                self.take(batch, now_ms())
            logger.warning("The feed ended and starts again")
        finally:
            self.source.lost()

    async def _keep_time(self) -> None:
        self.keep_time(now_ms())

    def _run(self, act: Callable[[], Awaitable[None]], pause_s: float, name: str) -> None:
        self._tasks.append(asyncio.create_task(_repeat(act, pause_s, name), name=name))


async def _repeat(act: Callable[[], Awaitable[None]], pause_s: float, name: str) -> None:
    while True:
        try:
            await act()
        except Exception:  # noqa: BLE001 - the top of a task: what broke is logged and tried again
            logger.exception("The %s broke and goes on", name)
        await asyncio.sleep(pause_s)
