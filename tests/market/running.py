"""An engine with what writes it, as long as a test needs it."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from core.background import cancel_and_wait
from core.threads import in_thread
from instruments.facts import InstrumentFacts
from market.engine.bus.local_bus import LocalBus, LocalJournal
from market.engine.engine import Engine
from market.engine.feeds.feed import MarketFeed
from market.engine.listeners import EngineListener, EngineStart, SeriesEnding
from market.engine.runner import Runner
from market.prices.quotes import Prices
from market.prices.records import AnyRecord
from market.store.series import load
from tests.patience import PATIENCE_S

from .ticking import NOON_MS

# Removed when the tests have ended.
FOLDERS = tempfile.TemporaryDirectory(prefix="journals-")
ENGINE_TASKS = ("market clock", "market status", "market store", "market retention")


def no_feed(name: str, instruments: list[InstrumentFacts]) -> MarketFeed:
    raise LookupError(name)


def make_journal() -> LocalJournal:
    return LocalJournal(Path(tempfile.mkdtemp(dir=FOLDERS.name)), dict)


def make_runner(
    engine: Engine,
    make_feed: Callable[[str, list[InstrumentFacts]], MarketFeed] = no_feed,
    hear: Callable[[list[AnyRecord]], None] = lambda records: None,
    listeners: Sequence[EngineListener] = (),
) -> Runner:
    return Runner(engine, make_feed, LocalBus(hear, make_journal()), listeners)


async def stop_engine_tasks(*names: str) -> None:
    """Those of the engine on this loop that have these names; without a name, all."""
    tasks = {task.get_name(): task for task in asyncio.all_tasks()}
    await cancel_and_wait(*(tasks[name] for name in names or ENGINE_TASKS if name in tasks))


async def flush_once(engine: Engine) -> bool:
    """As a process that ends cleanly then; whether all is written."""
    runner = make_runner(engine)
    async with asyncio.timeout(PATIENCE_S):
        # A thread that a test before this one left behind may have taken it.
        await runner.writer.wait_for_lease()
    is_written = await runner.writer.flush()
    await in_thread(runner.writer.lease.leave)
    return is_written


def flush(engine: Engine) -> bool:
    return asyncio.run(flush_once(engine))


def restarted() -> Engine:
    """Another process after a kill -9: it knows what the database knows."""
    engine = Engine(Prices("bid"))
    engine.resume(load(engine.prices).checkpoints, NOON_MS)
    return engine


class IdleListener:
    """It makes nothing of what it hears."""

    async def begin(self, start: EngineStart) -> None:
        pass

    async def stored(self, symbols: Collection[str]) -> None:
        pass

    def hear(self, records: list[AnyRecord]) -> None:
        pass

    def notes(self, *, is_behind: bool) -> Callable[[], None]:
        return lambda: None

    async def series_ends(self, ending: SeriesEnding) -> Callable[[], None]:
        return lambda: None

    async def end(self) -> None:
        pass
