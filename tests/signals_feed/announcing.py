"""Announcements for a stream of signals to read, without a database, and a listener to it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from django.db import OperationalError

from market.streams.announced_stream import Announced
from market.streams.hub.subscribers import Subscriber
from signals_feed.stream import SignalStream
from tests.market.streams.hub.hubs import RecordedConnection


def make_announced(position: int, symbol: str = "EURUSD", *, closed: bool = False) -> Announced:
    prefix = "closed/" if closed else ""
    return Announced(position, frozenset((prefix + symbol, prefix + "*")), b'{"n":%d}' % position)


def heard(line: RecordedConnection) -> list[int]:
    return [int(text[5:-1]) for text in line.heard]


class Journal:
    """The table of announcements. A reader waits before it sees it and before it knows what it saw."""

    def __init__(self, rows: Iterable[Announced] = (), pauses: Iterable[int] = ()) -> None:
        self.rows = list(rows)
        self.faults: list[Exception] = []
        self.reads = self.longest = 0
        self._pauses = iter(pauses)

    async def read(self, after: int, upto: int, limit: int) -> list[Announced]:
        self.reads += 1
        await self.pause()
        if self.faults:
            raise self.faults.pop()
        found = [row for row in self.rows if after < row.position <= upto][:limit]
        self.longest = max(self.longest, len(found))
        await self.pause()
        return found

    async def pause(self) -> None:
        for _ in range(next(self._pauses, 0)):
            await asyncio.sleep(0)


def make_stream(journal: Journal, position: int = 0, chunk: int = 2) -> SignalStream:
    stream = SignalStream(journal.read, chunk)
    stream.position = position
    return stream


def join(stream: SignalStream, *topics: str) -> tuple[Subscriber, RecordedConnection]:
    line = RecordedConnection()
    subscriber = stream.hub.join(line, lambda: None)
    stream.hub.subscribe(subscriber, topics)
    return subscriber, line


AWAY = OperationalError("the database is away")
