"""The journal between processes, over a real Redis."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from core.background import cancel_and_wait
from core.redis.connections import key_of
from instruments.catalogue import catalogue
from market.engine.bus.bus_reader import BusReader
from market.engine.bus.journal import HEAD, STREAM, decode, encode
from market.engine.bus.price_follower import BusListener
from market.engine.bus.redis_bus import MAX_WAITING, RedisBus
from market.models import EngineState
from market.prices.quotes import Prices
from market.prices.records import AnyRecord, JournalPosition, TickAccepted
from market.store.checkpoints import Checkpoint
from market.store.lease import LeaseLost
from tests.factories import make_instrument
from tests.market.ticking import NOON_MS
from tests.patience import PATIENCE_S, until
from tests.programs.services import redis as redis_server

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("transactional_db")]
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


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with redis_server(tmp_path_factory.mktemp("bus")) as address:
        yield address


@pytest.fixture
def client(url: str) -> Iterator[Redis]:
    with Redis.from_url(url) as client:
        client.flushdb()
        yield client


def taken(seq: int) -> TickAccepted:
    return TickAccepted("EURUSD", 1.0 + seq / 10_000, 1.5, NOON_MS + seq, 1.0, seq)


def number_of_entries(client: Redis) -> int:
    entries: Any = client.xlen(key_of(STREAM))
    return int(entries)


def seqs(client: Redis) -> list[int]:
    entries: Any = client.xrange(key_of(STREAM))
    records: list[AnyRecord] = [record for _, fields in entries for record in decode(fields[b"d"])]
    return [record.seq for record in records if isinstance(record, TickAccepted)]


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


def test_records_arrive_in_order_and_entries_have_no_hole(url: str, client: Redis) -> None:
    async def run() -> JournalPosition:
        bus = await opened(url)
        await publish(bus, 1, 500)
        await until(lambda: number_of_entries(client) == 500)
        await bus.close()
        return bus.journal_position

    position = asyncio.run(run())

    assert seqs(client) == list(range(1, 501))
    entries: Any = client.xrange(key_of(STREAM))
    numbers = [int(entry_id.split(b"-")[0]) for entry_id, _ in entries]
    assert numbers == list(range(position.number - 499, position.number + 1))


def test_what_waits_is_sent_at_the_end(url: str, client: Redis) -> None:
    async def run() -> None:
        bus = await opened(url)
        await publish(bus, 1, 50)
        await bus.close()

    asyncio.run(run())

    assert seqs(client) == list(range(1, 51))


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
    assert [record.seq for record in tail if isinstance(record, TickAccepted)] == [4, 5, 6]
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


def test_writer_that_was_replaced_publishes_nothing_more(url: str, client: Redis) -> None:
    async def run() -> None:
        owner = JournalWriter()
        old = await opened(url, owner)
        await publish(old, 1, 1)
        await until(lambda: number_of_entries(client) == 1)
        new = RedisBus(url)
        await new.open(JournalWriter("second"), old.journal_position)
        await publish(old, 2, 2)
        await asyncio.wait_for(owner.has_lost_lease.wait(), PATIENCE_S)
        await old.close()
        await new.close()

    asyncio.run(run())

    assert seqs(client) == [1]


def test_what_is_settled_a_successor_hears_of(url: str, client: Redis) -> None:
    async def run() -> list[int]:
        bus = await opened(url)
        bus.written(bus.journal_position)
        await publish(bus, 1, 50)
        await asyncio.wait_for(bus.settle(), PATIENCE_S)
        heard = seqs(client)
        await bus.close()
        return heard

    assert asyncio.run(run()) == list(range(1, 51))


def test_nothing_is_settled_by_a_writer_that_was_replaced(url: str, client: Redis) -> None:
    async def run() -> None:
        old = await opened(url)
        new = RedisBus(url)
        await new.open(JournalWriter("second"), old.journal_position)
        old.publish([taken(1)])
        with pytest.raises(LeaseLost):
            await asyncio.wait_for(old.settle(), PATIENCE_S)
        await old.close()
        await new.close()

    asyncio.run(run())


def test_nothing_is_settled_while_redis_is_away(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        with redis_server(tmp_path) as address:
            bus = await opened(address)
        bus.written(bus.journal_position)
        bus.publish([taken(1)])
        settling = asyncio.create_task(bus.settle())
        await until(lambda: "The bus waits for Redis" in caplog.text)
        assert not settling.done()
        await cancel_and_wait(settling)
        await bus.close()

    asyncio.run(run())


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


def test_redis_away_for_long_costs_no_more_memory_than_is_said(tmp_path: Path) -> None:
    async def run() -> int:
        with redis_server(tmp_path) as address:
            bus = await opened(address)
        for seq in range(2 * MAX_WAITING):
            bus.publish([taken(seq)])
            bus.seal()
        waiting = bus.waiting
        await bus.close()
        return waiting

    assert asyncio.run(run()) <= MAX_WAITING


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


class Following:
    """A web process: what it heard, and how often it had to load anew."""

    def __init__(self, url: str) -> None:
        self.heard: list[int] = []
        self.missed: list[str] = []
        self.kept: list[int] = []
        self.followed: set[str] | None = None
        self.prices = Prices("bid")
        listener = BusListener(self.hear, self.keep, self.miss, lambda: self.followed)
        self.reader = BusReader(url, self.prices, listener)

    def hear(self, records: list[AnyRecord]) -> None:
        self.heard += [record.seq for record in records if isinstance(record, TickAccepted)]

    def keep(self, symbol: str, records: list[AnyRecord], came_ms: list[int]) -> None:
        self.kept += [record.seq for record in records if isinstance(record, TickAccepted)]

    def miss(self, epoch: str, checkpoints: Mapping[str, Checkpoint]) -> None:
        self.missed.append(epoch)


def write_position(position: JournalPosition) -> None:
    EngineState.objects.update_or_create(
        pk=1, defaults={"epoch": position.epoch, "position": position.number, "writer": "first"}
    )


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


def test_reader_hears_everything_once_and_in_order(url: str, client: Redis) -> None:
    async def act(bus: RedisBus, following: Following) -> None:
        await publish(bus, 1, 300)
        await until(lambda: len(following.heard) >= 300)

    following = follow(url, act)

    assert following.heard == list(range(1, 301))
    assert following.missed == []
    quote = following.prices.quotes.get("EURUSD")
    assert quote is not None
    assert quote.time_ms == NOON_MS + 300


def test_reader_that_lost_its_connection_misses_nothing(url: str, client: Redis) -> None:
    async def act(bus: RedisBus, following: Following) -> None:
        for first in range(1, 200, 20):
            await publish(bus, first, first + 19)
            client.client_kill_filter(_type="normal", skipme=True)
            await asyncio.sleep(0)
        await until(lambda: len(following.heard) >= 200)

    following = follow(url, act)

    assert following.heard == list(range(1, 201))
    assert following.missed == []


def test_reader_notices_an_entry_that_it_never_saw(url: str, client: Redis) -> None:
    async def act(bus: RedisBus, following: Following) -> None:
        await publish(bus, 1, 2)
        await until(lambda: len(following.heard) == 2)
        number = bus.journal_position.number + 2
        client.xadd(
            key_of(STREAM), {"e": bus.journal_position.epoch, "d": encode([taken(4)])}, id=f"{number}-0"
        )
        client.hset(key_of(HEAD), "n", str(number))
        await asyncio.to_thread(write_position, JournalPosition(bus.journal_position.epoch, number - 1))
        await until(lambda: 4 in following.heard)

    following = follow(url, act)

    assert following.heard == [1, 2, 4]
    assert len(following.missed) == 1
