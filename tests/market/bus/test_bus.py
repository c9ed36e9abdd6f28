"""The journal between processes, over a real Redis: what a writer publishes, settles and hands on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from core.background import cancel_and_wait
from core.redis.connections import key_of
from market.engine.bus import redis_bus
from market.engine.bus.journal import HEAD, STATUS, STREAM
from market.engine.bus.redis_bus import FULL, KEEP_S, MAX_WAITING, STEP_S, HeldEntries, RedisBus
from market.engine.status import EngineStatus, encode_status
from market.prices.records import AnyRecord, JournalPosition
from market.store.lease import LeaseLost
from tests.market.engine_status import make_instrument_status
from tests.market.ticking import NOON_MS
from tests.patience import PATIENCE_S, until
from tests.programs.debian import require_debian
from tests.programs.redis_group import FORGETFUL, RedisNode
from tests.programs.services import redis as redis_server
from tests.reliability.services.private_servers import PrivateRedis

from .buses import NOWHERE, JournalWriter, number_of_entries, opened, publish, seqs, seqs_of, taken


def test_records_arrive_in_order_and_entries_have_no_hole(url: str, client: Redis) -> None:
    async def run() -> JournalPosition:
        bus = await opened(url)
        await publish(bus, 1, 500)
        # What waits is sent at the end.
        await bus.close()
        return bus.journal_position

    position = asyncio.run(run())

    assert seqs(client) == list(range(1, 501))
    entries: Any = client.xrange(key_of(STREAM))
    numbers = [int(entry_id.split(b"-")[0]) for entry_id, _ in entries]
    assert numbers == list(range(position.number - 499, position.number + 1))


def test_successor_goes_on_with_the_same_numbering_and_hears_what_was_not_written(
    url: str, client: Redis
) -> None:
    async def run() -> tuple[JournalPosition, JournalPosition, list[AnyRecord]]:
        first = await opened(url)
        await publish(first, 1, 3)
        written = first.seal()
        await publish(first, 4, 6)
        await first.close()
        second = RedisBus(url)
        tail = await second.open(JournalWriter("second"), written)
        await publish(second, 7, 8)
        await second.close()
        return first.journal_position, second.journal_position, tail

    before, after, tail = asyncio.run(run())

    assert after == JournalPosition(before.epoch, before.number + 2)
    assert seqs_of(tail) == [4, 5, 6]
    assert seqs(client) == list(range(1, 9))


@pytest.mark.parametrize(
    "fault", ["the stream is gone", "a piece of it is gone", "another epoch was written"]
)
def test_successor_that_cannot_know_everything_begins_anew(url: str, client: Redis, fault: str) -> None:
    async def run() -> tuple[JournalPosition, JournalPosition, int]:
        first = await opened(url)
        await publish(first, 1, 2)
        written = first.seal()
        await publish(first, 3, 4)
        await first.close()
        if fault == "the stream is gone":
            client.flushdb()
        elif fault == "a piece of it is gone":
            client.xdel(key_of(STREAM), f"{written.number + 1}-0")
        else:
            written = JournalPosition("other", written.number)
        owner = JournalWriter("second")
        second = RedisBus(url)
        assert await second.open(owner, written) == []
        await second.close()
        return first.journal_position, second.journal_position, owner.flushes

    before, after, flushes = asyncio.run(run())

    assert after.epoch != before.epoch
    assert after.number > before.number
    assert flushes == 1


def test_writer_that_was_replaced_publishes_and_settles_nothing_more(url: str, client: Redis) -> None:
    async def run() -> None:
        owner = JournalWriter()
        old = await opened(url, owner)
        await publish(old, 1, 1)
        await until(lambda: number_of_entries(client) == 1)
        new = await opened(url, JournalWriter("second"), old.journal_position)
        old.publish([taken(2)])
        with pytest.raises(LeaseLost):
            await asyncio.wait_for(old.settle(), PATIENCE_S)
        await asyncio.wait_for(owner.has_lost_lease.wait(), PATIENCE_S)
        await old.close()
        await new.close()

    asyncio.run(run())

    assert seqs(client) == [1]


def test_writer_that_gave_up_records_and_was_replaced_takes_nothing_from_its_successor(
    url: str, client: Redis
) -> None:
    async def run() -> None:
        owner = JournalWriter()
        old, new = await opened(url, owner), await opened(url, JournalWriter("second"))
        await publish(new, 1, 3)
        await until(lambda: number_of_entries(client) == 3)
        old.publish([taken(4)] * (MAX_WAITING + 1))
        await until(owner.has_lost_lease.is_set)
        await new.close()
        await old.close()

    asyncio.run(run())

    assert seqs(client) == [1, 2, 3]


def test_same_entry_again_is_not_doubled(url: str, client: Redis) -> None:
    """Its answer was lost on the way, so the same writer sends it again."""

    async def run() -> None:
        unanswered = await opened(url)
        bus = await opened(url, position=unanswered.journal_position)
        await publish(unanswered, 1, 1)
        await until(lambda: number_of_entries(client) == 1)
        await publish(bus, 1, 2)
        await until(lambda: seqs(client) != [1])
        await bus.close()
        await unanswered.close()

    asyncio.run(run())

    assert seqs(client) == [1, 2]


@pytest.mark.parametrize("fault", ["empty", "as it was before", "of an older numbering"])
def test_redis_that_lost_what_it_took_is_given_it_again(url: str, client: Redis, fault: str) -> None:
    async def run() -> tuple[JournalPosition, JournalPosition]:
        bus = await opened(url)
        await publish(bus, 1, 3)
        await until(lambda: number_of_entries(client) == 3)
        before = bus.journal_position
        if fault == "empty":
            client.flushdb()
        elif fault == "as it was before":
            client.xdel(key_of(STREAM), f"{before.number}-0")
            client.hset(key_of(HEAD), "n", str(before.number - 1))
        else:
            client.delete(key_of(STREAM))
            client.hset(key_of(HEAD), mapping={"epoch": "older", "n": "7"})
        await publish(bus, 4, 5)
        await until(lambda: seqs(client) == [1, 2, 3, 4, 5])
        await bus.close()
        return before, bus.journal_position

    before, after = asyncio.run(run())

    assert after == JournalPosition(before.epoch, before.number + 2)


def test_redis_that_is_away_costs_no_more_memory_than_is_said_and_nothing_is_settled(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        with redis_server(tmp_path) as address:
            bus = await opened(address)
        bus.written(bus.journal_position)
        bus.publish([taken(1)])
        settling = asyncio.create_task(bus.settle())
        await until(lambda: "The bus waits for Redis" in caplog.text)
        assert not settling.done()
        await cancel_and_wait(settling)
        await publish(bus, 2, 2 * MAX_WAITING)
        assert bus.waiting <= MAX_WAITING
        await bus.close()

    asyncio.run(run())


async def settles_once_it_is_written(bus: RedisBus, settling: asyncio.Task[None]) -> None:
    # What is published later has arrived, and it still waits.
    await publish(bus, 7, 7)
    await until(lambda: bus.waiting == 0)
    assert not settling.done()
    bus.written(bus.journal_position)
    await asyncio.wait_for(settling, PATIENCE_S)
    await bus.close()


def test_nothing_is_settled_before_the_database_has_the_numbering_and_then_a_successor_hears_of_it(
    url: str, client: Redis
) -> None:
    """It would find another numbering there, and leave what is in the stream."""

    async def run() -> list[int]:
        bus = await opened(url)
        await publish(bus, 1, 1)
        await until(lambda: number_of_entries(client) == 1)
        settling = asyncio.create_task(bus.settle())
        await publish(bus, 2, 2)
        await until(lambda: bus.waiting == 0)
        assert not settling.done()
        bus.written(bus.journal_position)
        await publish(bus, 3, 50)
        await asyncio.wait_for(bus.settle(), PATIENCE_S)
        await settling
        heard = seqs(client)
        await bus.close()
        return heard

    assert asyncio.run(run()) == list(range(1, 51))


def test_what_was_given_up_is_not_settled_before_it_is_written(url: str, client: Redis) -> None:
    async def run() -> None:
        bus = await opened(url)
        bus.written(before := bus.journal_position)
        bus.publish([taken(1)] * (MAX_WAITING + 1))
        settling = asyncio.create_task(bus.settle())
        await until(lambda: bus.journal_position.epoch != before.epoch)
        await settles_once_it_is_written(bus, settling)

    asyncio.run(run())


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
        await settles_once_it_is_written(bus, asyncio.create_task(bus.settle()))

    asyncio.run(run())


def test_what_the_database_lacks_stays_however_much_it_is(
    url: str, client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_bus, "ENTRIES_AT_ONCE", 300)

    async def run() -> list[AnyRecord]:
        now_s = 0.0
        first, second = (RedisBus(url, held=HeldEntries(10, 10), clock=lambda: now_s) for _ in range(2))
        await first.open(JournalWriter(), NOWHERE)
        first.written(written := first.journal_position)
        await publish(first, 1, 1000)
        await until(lambda: first.waiting == 0)
        now_s += 2 * KEEP_S
        await publish(first, 1001, 1001)
        await until(lambda: first.waiting == 0)
        tail = await second.open(JournalWriter("second"), written)
        second.written(second.journal_position)
        for seq, pause_s in ((1002, KEEP_S), (1003, 1.0)):
            assert number_of_entries(client) == seq - 1
            now_s += pause_s
            await publish(second, seq, seq)
            await until(lambda: second.waiting == 0)
        await first.close()
        await second.close()
        return tail

    assert seqs_of(asyncio.run(run())) == list(range(1, 1002))
    assert number_of_entries(client) < 1000


def test_status_is_overwritten_and_the_stream_has_only_short_signs_of_life(url: str, client: Redis) -> None:
    def told(at_ms: int) -> EngineStatus:
        return EngineStatus(
            at_ms, f"host:1:{'m' * 100}", "epoch", instruments=[make_instrument_status()] * 100
        )

    async def run() -> None:
        bus = await opened(url)
        for at_ms in (NOON_MS, NOON_MS + 1_000):
            bus.tell(told(at_ms))
            bus.seal()
        await until(lambda: bus.waiting == 0)
        await bus.close()

    asyncio.run(run())

    entries: Any = client.xrange(key_of(STREAM))
    assert [len(fields[b"d"]) <= 100 for _, fields in entries] == [True, True]
    assert client.get(key_of(STATUS)) == encode_status(told(NOON_MS + 1_000))


def test_bus_is_full_while_what_has_to_stay_is_too_much(
    url: str, client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_bus, "MOST_BYTES", 10_000)
    faults = []

    async def run() -> None:
        now_s = 0.0
        bus = RedisBus(url, held=HeldEntries(kept_bytes=0), clock=lambda: now_s)
        await bus.open(JournalWriter(), NOWHERE)
        bus.written(bus.journal_position)
        for seq, pause_s, is_written in ((1, 0, False), (501, KEEP_S + 1, False), (502, 0, True)):
            now_s += pause_s
            if is_written:
                bus.written(bus.journal_position)
            await publish(bus, seq, max(seq, 500))
            await until(lambda: bus.waiting == 0)
            faults.append(bus.fault)
        await bus.close()

    asyncio.run(run())

    assert faults == [FULL, FULL, ""]


@pytest.fixture(params=["of the wheel", "of Debian"])
def small(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RedisNode]:
    """Older servers say otherwise that they are full."""
    binary = require_debian("redis-server") if request.param == "of Debian" else ""
    node = RedisNode(tmp_path, FORGETFUL, binary)
    with node.running():
        yield node


@pytest.mark.served
def test_redis_that_is_full_settles_nothing_and_loses_nothing_and_gets_room_from_what_may_go(
    small: RedisNode,
) -> None:
    url = f"redis://127.0.0.1:{small.port}/0"

    async def run() -> None:
        now_s = 0.0
        first, second = (RedisBus(url, clock=lambda: now_s) for _ in range(2))
        await first.open(JournalWriter(), NOWHERE)
        first.written(written := first.journal_position)
        await publish(first, 1, 3)
        await first.settle()
        small.client.config_set("maxmemory", 1)
        await publish(first, 4, 4)
        settling = asyncio.create_task(first.settle())
        await until(lambda: first.fault == FULL)
        assert not settling.done()
        await cancel_and_wait(settling)
        assert seqs_of(await second.open(JournalWriter("second"), written)) == [1, 2, 3]
        now_s += STEP_S
        await publish(second, 5, 5)
        await until(lambda: second.fault == FULL)
        small.client.config_set("maxmemory", 0)
        await second.settle()
        assert seqs(small.client) == [1, 2, 3, 5]
        second.written(second.journal_position)
        small.client.config_set("maxmemory", 1)
        now_s += KEEP_S + 1
        await publish(second, 6, 6)
        await until(lambda: seqs(small.client) == [])
        small.client.config_set("maxmemory", 0)
        await second.settle()
        assert seqs(small.client) == [6]
        await until(lambda: second.fault == "")
        await second.close()
        await first.close()

    asyncio.run(run())


def test_redis_that_comes_up_late_still_hands_on_what_it_holds_and_is_not_waited_for_for_ever(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = PrivateRedis(tmp_path)

    async def run() -> list[AnyRecord]:
        second, impatient = RedisBus(server.url), RedisBus(server.url, awaited_s=0.1)
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
        assert await impatient.open(JournalWriter(), written) == []
        assert impatient.journal_position.epoch != written.epoch
        await impatient.close()
        return tail

    assert seqs_of(asyncio.run(run())) == [1, 2, 3]
