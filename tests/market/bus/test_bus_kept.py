"""What a successor finds of what was published and not written, and what is acknowledged only then."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from redis import Redis

from market.engine.bus import redis_bus
from market.engine.bus.redis_bus import MAX_WAITING, RedisBus
from market.prices.records import AnyRecord, JournalPosition, TickAccepted
from tests.patience import PATIENCE_S, until
from tests.reliability.services.private_servers import PrivateRedis

from .test_bus import NOWHERE, JournalWriter, client, number_of_entries, opened, publish, taken, url

__all__ = ["client", "url"]


async def settles_once_it_is_written(bus: RedisBus) -> None:
    settling = asyncio.create_task(bus.settle())
    # What is published later has arrived, and it still waits.
    await publish(bus, 7, 7)
    await until(lambda: bus.waiting == 0)
    assert not settling.done()
    bus.written(bus.journal_position)
    await asyncio.wait_for(settling, PATIENCE_S)
    await bus.close()


def test_nothing_is_settled_before_the_database_has_the_numbering(url: str, client: Redis) -> None:
    """A successor would find another numbering there, and leave what is in the stream."""

    async def run() -> None:
        bus = await opened(url)
        await publish(bus, 1, 1)
        await until(lambda: number_of_entries(client) == 1)
        await settles_once_it_is_written(bus)

    asyncio.run(run())


def test_what_was_given_up_is_not_settled_before_it_is_written(url: str, client: Redis) -> None:
    async def run() -> None:
        bus = await opened(url)
        bus.written(bus.journal_position)
        before = bus.journal_position
        bus.publish([taken(1)] * (MAX_WAITING + 1))
        settling = asyncio.create_task(bus.settle())
        await until(lambda: bus.journal_position.epoch != before.epoch)
        await publish(bus, 2, 2)
        await until(lambda: bus.waiting == 0)
        assert not settling.done()
        bus.written(bus.journal_position)
        await asyncio.wait_for(settling, PATIENCE_S)
        await bus.close()

    asyncio.run(run())


def test_what_the_database_lacks_stays_however_much_it_is(
    url: str, client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_bus, "ENTRIES_AT_ONCE", 300)

    async def run() -> tuple[int, list[AnyRecord], int]:
        first = RedisBus(url, max_entries=10)
        await first.open(JournalWriter(), NOWHERE)
        written = first.journal_position
        first.written(written)
        await publish(first, 1, 1000)
        await until(lambda: first.waiting == 0)
        second = RedisBus(url, max_entries=10)
        tail = await second.open(JournalWriter("second"), written)
        second.written(second.journal_position)
        await publish(second, 1001, 1001)
        await until(lambda: second.waiting == 0)
        await first.close()
        await second.close()
        return len(tail), tail, number_of_entries(client)

    many, tail, left = asyncio.run(run())

    assert [record.seq for record in tail if isinstance(record, TickAccepted)] == list(range(1, 1001))
    assert left < many


def test_nothing_is_settled_while_redis_lacks_what_the_database_does(
    url: str, client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A successor would find that numbers are missing, and leave all of it."""
    monkeypatch.setattr(redis_bus, "MAX_REMEMBERED", 2)

    async def run() -> None:
        bus = await opened(url)
        bus.written(bus.journal_position)
        await publish(bus, 1, 5)
        await asyncio.wait_for(bus.settle(), PATIENCE_S)
        client.flushall()
        await publish(bus, 6, 6)
        await until(lambda: number_of_entries(client) == 3)
        await settles_once_it_is_written(bus)

    asyncio.run(run())


def test_redis_that_comes_up_late_still_hands_on_what_it_holds(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def run(server: PrivateRedis) -> list[AnyRecord]:
        second = RedisBus(server.url, awaited_s=PATIENCE_S)
        with server.running():
            first = await opened(server.url)
            written = first.journal_position
            await publish(first, 1, 3)
            await until(lambda: first.waiting == 0)
            await asyncio.to_thread(server.client.save)
            await first.close()
        opening = asyncio.create_task(second.open(JournalWriter("second"), written))
        await until(lambda: "The bus waits for Redis" in caplog.text)
        with server.running():
            tail = await asyncio.wait_for(opening, PATIENCE_S)
            await second.close()
        return tail

    tail = asyncio.run(run(PrivateRedis(tmp_path)))

    assert [record.seq for record in tail if isinstance(record, TickAccepted)] == [1, 2, 3]


def test_redis_that_does_not_come_up_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    async def run() -> list[AnyRecord]:
        bus = RedisBus(PrivateRedis(tmp_path).url, awaited_s=0.1)
        tail = await bus.open(JournalWriter(), JournalPosition("e1", 41))
        assert bus.journal_position.epoch != "e1"
        await bus.close()
        return tail

    assert asyncio.run(run()) == []
