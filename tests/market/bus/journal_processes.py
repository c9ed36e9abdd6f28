"""Processes over one folder of a journal, one after the other, each of which may be killed."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from itertools import count
from pathlib import Path

from market.engine.bus.journal import StreamNumbers
from market.engine.bus.local_bus import LocalBus, LocalJournal
from market.prices.records import AnyRecord, JournalPosition, TickAccepted

killed = count(1)


class JournalWriter:
    writer = "test"

    def __init__(self) -> None:
        self.flushes = 0

    def lose_lease(self) -> None: ...

    def flush_soon(self) -> None:
        self.flushes += 1


class Process:
    def __init__(self, folder: Path, seq: int | Callable[[], StreamNumbers] = 1_000) -> None:
        """`seq` is the last that the database holds, or what the engine knows of."""
        self.folder = folder
        self.journal = LocalJournal(folder, seq if callable(seq) else lambda: {"EURUSD": (seq, 0)})
        started.append(self)
        self.bus = LocalBus(lambda records: None, self.journal)

    def start(self, position: JournalPosition) -> list[AnyRecord]:
        return asyncio.run(self.bus.open(JournalWriter(), position))

    def kill(self) -> JournalPosition:
        """What it wrote stays, as a copy without its lock; nothing that it still does gets there."""
        former = self.folder.rename(self.folder.with_name(f"killed-{next(killed)}"))
        shutil.copytree(former, self.folder)
        return self.bus.journal_position


started: list[Process] = []


def taken(seq: int) -> TickAccepted:
    return TickAccepted("EURUSD", 1.1, 1.2, 1_000 * seq, 1.0, seq)


def begun(folder: Path, seq: int = 1_000) -> Process:
    process = Process(folder, seq)
    assert process.start(JournalPosition("", 0)) == []
    return process
