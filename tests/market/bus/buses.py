"""Buses over a real Redis, their writers, and web processes that follow them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from redis import Redis

from core.redis.connections import key_of
from instruments.catalogue import catalogue
from market.engine.bus.bus_reader import BusListener, BusReader
from market.engine.bus.journal import STREAM, decode
from market.engine.bus.redis_bus import RedisBus
from market.models import EngineState
from market.prices.quotes import Prices
from market.prices.records import AnyRecord, JournalPosition, TickAccepted
from market.store.checkpoints import Checkpoint
from tests.factories import make_instrument
from tests.market.ticking import NOON_MS

NOWHERE = JournalPosition("", 0)


class JournalWriter:
    def __init__(self, writer: str = "first") -> None:
        self.writer = writer
        self.has_lost_lease = asyncio.Event()
        self.flushes = 0

    def lose_lease(self) -> None:
        self.has_lost_lease.set()

    def flush_soon(self) -> None:
        self.flushes += 1


def taken(seq: int) -> TickAccepted:
    return TickAccepted("EURUSD", 1.0 + seq / 10_000, 1.5, NOON_MS + seq, 1.0, seq)


def seqs_of(records: Sequence[AnyRecord]) -> list[int]:
    return [record.seq for record in records if isinstance(record, TickAccepted)]


def seqs(client: Redis) -> list[int]:
    entries: Any = client.xrange(key_of(STREAM))
    return seqs_of([record for _, fields in entries for record in decode(fields[b"d"])])


def number_of_entries(client: Redis) -> int:
    entries: Any = client.xlen(key_of(STREAM))
    return int(entries)


async def publish(bus: RedisBus, first: int, last: int) -> None:
    """Each in an entry of its own."""
    for seq in range(first, last + 1):
        bus.publish([taken(seq)])
        bus.seal()


async def opened(
    url: str, owner: JournalWriter | None = None, position: JournalPosition = NOWHERE
) -> RedisBus:
    bus = RedisBus(url)
    await bus.open(owner or JournalWriter(), position)
    return bus


def write_position(position: JournalPosition) -> None:
    EngineState.objects.update_or_create(
        pk=1, defaults={"epoch": position.epoch, "position": position.number, "writer": "first"}
    )


class Following:
    """A web process: what it heard, and how often it had to load anew."""

    def __init__(self, url: str) -> None:
        self.heard: list[int] = []
        self.missed: list[str] = []
        self.prices = Prices("bid")
        listener = BusListener(self.hear, self.keep, self.miss, lambda: None)
        self.reader = BusReader(url, self.prices, listener)

    def hear(self, records: list[AnyRecord]) -> None:
        self.heard += seqs_of(records)

    def keep(self, symbol: str, records: list[AnyRecord], came_ms: list[int]) -> None:
        raise AssertionError

    def miss(self, epoch: str, checkpoints: Mapping[str, Checkpoint]) -> None:
        self.missed.append(epoch)


def follow(url: str, act: Callable[[RedisBus, Following], Awaitable[None]]) -> Following:
    make_instrument("EURUSD")
    catalogue.load_now()

    async def run() -> Following:
        bus = await opened(url)
        await asyncio.to_thread(write_position, bus.journal_position)
        following = Following(url)
        await following.reader.start()
        await act(bus, following)
        await following.reader.stop()
        await bus.close()
        return following

    return asyncio.run(run())
