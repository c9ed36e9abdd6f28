"""An engine whose ticks are kept, driven tick by tick over days that are made up."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from archive.folding.work import fold_what_is_due
from archive.journal import TickJournal
from archive.keeper import TickKeeper
from archive.stores import DiskStore
from core.times import epoch_ms
from market.engine.bus.local_bus import LocalBus, LocalJournal
from market.engine.engine import Engine
from market.engine.runner import Runner
from market.prices.quotes import Prices
from market.prices.records import AnyRecord, Tick
from tests.market.running import no_feed, stop_engine_tasks

DAY = date(2026, 11, 18)
DAY_MS = epoch_ms(datetime(2026, 11, 18, tzinfo=UTC))


class KeptEngine:
    """Everything of it lies in one folder; the next one goes on there, as the next process does."""

    def __init__(self, folder: Path, source: str = "push") -> None:
        self.folder, self.source = folder, source
        self.engine = Engine(Prices("bid"), source)
        self.keeper = TickKeeper()
        self.records: list[AnyRecord] = []
        journal = LocalJournal(folder / "bus", self._numbers)
        self.runner = Runner(self.engine, no_feed, LocalBus(lambda records: None, journal), [self.keeper])

    def _numbers(self) -> dict[str, tuple[int, int]]:
        return {symbol: (known.seq, known.flow_seq) for symbol, known in self.engine.numbers().items()}

    async def __aenter__(self) -> KeptEngine:
        assert await self.runner.writer.try_lease()
        await self.runner.start()
        await stop_engine_tasks()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.runner.stop()

    def tick(self, bid: float, at_ms: int, spread: float = 0.0001, **fields: Any) -> None:
        symbol = fields.pop("symbol", "EURUSD")
        tick = Tick(symbol, bid, round(bid + spread, 5), at_ms, **fields)
        assert self.engine.accept(tick, at_ms, self.source) is None
        self.runner.publish()

    def pass_time(self, at_ms: int) -> None:
        self.engine.feed_state(self.source).heard(at_ms)
        self.engine.keep_time(at_ms)
        self.runner.publish()

    async def write(self) -> None:
        assert await self.runner.writer.flush()

    async def kill(self) -> None:
        """As kill -9 does: what is neither in the database nor in a file is gone."""
        await stop_engine_tasks()
        self.keeper.writer = None
        await self.keeper.end()
        await self.runner.writer.leave()


def journal_of(folder: Path) -> TickJournal:
    return TickJournal(folder / "var" / "ticks")


def store_of(folder: Path) -> DiskStore:
    return DiskStore(folder / "archive")


def fold(folder: Path, now: datetime | None = None, keep_days: int = 0) -> list[date]:
    now = now or datetime(2026, 11, 19, 0, 5, tzinfo=UTC)
    return fold_what_is_due(journal_of(folder), store_of(folder), now, keep_days)
