"""An engine whose ticks are kept, driven tick by tick over days that are made up."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from archive.folding.fold import fold_what_is_due
from archive.journal import TickJournal, TickJournalWriter
from archive.keeper import TickKeeper
from archive.manifests import ArchiveManifest, ManifestFile, decoded
from archive.stores import DiskStore
from core.times import MINUTE_MS, epoch_ms
from market.engine import SymbolStanding
from market.engine.bus.local_bus import LocalBus, LocalJournal
from market.engine.engine import Engine
from market.engine.listeners import EngineListener
from market.engine.runner import Runner
from market.prices.candles import PriceBar
from market.prices.quotes import Prices
from market.prices.records import HistoryMinute, SeriesBegan, Tick, TickAccepted
from market.runtime import given_numbers
from tests.market.running import no_feed, stop_engine_tasks

DAY = date(2026, 11, 18)
DAY_MS = epoch_ms(datetime(2026, 11, 18, tzinfo=UTC))
NEXT_MS = DAY_MS + 24 * 60 * MINUTE_MS
NIGHT = datetime(2026, 11, 19, 0, 5, tzinfo=UTC)
PAUSES_MS = (0, 0, 40, 900, 2_500, 7_000, 30_000, 200_000)
HEARD_EVERY_MS = 10_000
HOUR_MS = 3_600_000


class KeptEngine:
    """Everything of it lies in one folder; the next one goes on there, as the next process does."""

    def __init__(
        self,
        folder: Path,
        source: str = "push",
        candle_price: str = "bid",
        listeners: Sequence[EngineListener] = (),
        prices: Prices | None = None,
    ) -> None:
        self.folder, self.source = folder, source
        self.engine = Engine(prices or Prices(candle_price), source)
        self.keeper = TickKeeper()
        journal = LocalJournal(folder / "bus", partial(given_numbers, self.engine))
        bus = LocalBus(lambda records: None, journal)
        self.runner = Runner(self.engine, no_feed, bus, [*listeners, self.keeper])

    async def __aenter__(self) -> KeptEngine:
        assert await self.runner.writer.try_lease()
        await self.runner.start()
        await stop_engine_tasks()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.runner.stop()

    def tick(self, bid: float, at_ms: int, spread: float = 0.0001, **fields: Any) -> None:
        symbol, origin = fields.pop("symbol", "EURUSD"), fields.pop("origin", self.source)
        tick = Tick(symbol, bid, round(bid + spread, 5), at_ms, **fields)
        assert self.engine.accept(tick, at_ms, origin) is None
        self.runner.publish()

    def walk(self, number: int, at_ms: int, seed: int = 1, **fields: Any) -> int:
        """Ticks of a market that moves, with flat minutes between some; returns when the last came."""
        draw, points = random.Random(seed), 108_000  # noqa: S311 - prices
        for _ in range(number):
            for pause_ms in split(draw.choice(PAUSES_MS)):
                at_ms += pause_ms
                self.pass_time(at_ms)
            points += draw.randint(-9, 9)
            volume, side = draw.randint(1, 10**9) / 1e8, draw.choice((-1, 1))
            self.tick(points / 1e5, at_ms, draw.randint(0, 20) / 1e5, volume=volume, side=side, **fields)
        return at_ms

    def pass_time(self, at_ms: int) -> None:
        feed_state = self.engine.feed_state(self.source)
        feed_state.heard(at_ms)
        if feed_state.source_ms is not None:
            feed_state.note_time(at_ms, 0)
        self.engine.keep_time(at_ms)
        self.runner.publish()

    def backfill(self, minutes: Sequence[PriceBar], at_ms: int, basis: str = "trades") -> None:
        assert self.engine.backfill("EURUSD", minutes, basis, at_ms) == len(minutes)
        self.runner.publish()

    async def end_day(self, **fields: Any) -> None:
        """What came is written, and the next day begins with a tick."""
        await self.write()
        self.tick(1.08, NEXT_MS + 1_000, **fields)
        await self.write()

    async def write(self) -> None:
        assert await self.runner.writer.flush()

    async def kill(self) -> None:
        """As kill -9 does: what is neither in the database nor in a file is gone."""
        await stop_engine_tasks()
        self.keeper.writer = None
        await self.keeper.end()
        await self.runner.writer.leave()


def split(pause_ms: int) -> list[int]:
    """The source is heard meanwhile, so that minutes go by flat."""
    times, rest = divmod(pause_ms, HEARD_EVERY_MS)
    return [HEARD_EVERY_MS] * times + [rest]


def journal_of(folder: Path) -> TickJournal:
    return TickJournal(folder / "var" / "ticks")


def store_of(folder: Path) -> DiskStore:
    return DiskStore(folder / "archive")


def fold(folder: Path, now: datetime = NIGHT, keep_days: int = 0) -> list[date]:
    return fold_what_is_due(journal_of(folder), store_of(folder), now, keep_days)


def manifest_of(folder: Path, day: date = DAY) -> ArchiveManifest:
    return decoded(store_of(folder).read(f"manifests/{day}.json"))


def file_of(folder: Path, kind: str = "ticks", symbol: str = "EURUSD") -> ManifestFile:
    found = manifest_of(folder).files
    return next(file for file in found if (file.kind, file.symbol) == (kind, symbol))


def tick(seq: int, at_ms: int, symbol: str = "EURUSD", source: str = "kraken") -> TickAccepted:
    return TickAccepted(symbol, 1.08, 1.0801, at_ms, 1.0, seq, source=source, side=1)


def write(
    folder: Path,
    *records: TickAccepted | SeriesBegan | HistoryMinute,
    began: int | None = 0,
    at_ms: int = DAY_MS,
    closed_until_ms: int = 0,
) -> None:
    """As an engine that began where `began` says, knowing the minutes before `closed_until_ms`."""
    standings = {} if began is None else {"EURUSD": SymbolStanding(began, closed_until_ms)}
    writer = TickJournalWriter(journal_of(folder), "bid", standings, at_ms)
    writer.write([("epoch", list(records))])
    writer.close()


def archive(folder: Path, *records: TickAccepted | SeriesBegan | HistoryMinute) -> None:
    """What an engine wrote on the day becomes its files."""
    write(folder, *records)
    fold(folder)


def seqs(folder: Path, day: date = DAY) -> list[int]:
    table = pq.read_table(store_of(folder).root / f"ticks/EURUSD/{day}.parquet")
    numbers: list[int] = table["seq"].to_pylist()
    return numbers


def holes(folder: Path, day: date = DAY) -> list[tuple[str, str, int | None]]:
    manifest = manifest_of(folder, day)
    assert manifest.complete is not bool(manifest.holes)
    return [(hole.start[11:19], hole.end[11:19], hole.missing) for hole in manifest.holes]
