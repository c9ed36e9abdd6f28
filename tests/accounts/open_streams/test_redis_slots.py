"""Two processes' worth of streams in one loop, over a Redis that is well."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sized
from typing import Any

import pytest
from redis import Redis

from accounts.open_streams.redis_slots import MORE, RedisSlots, stream_fallbacks
from accounts.open_streams.stream_slots import Slot
from tests.accounts.counters import value_of
from tests.patience import PATIENCE_S

from .claims import MARKET, SIGNALS, claimed, ignore, refused, release, started, until


@pytest.fixture(autouse=True)
def _patience() -> Iterator[None]:
    """A machine busy with other things is no Redis that is away."""
    before, RedisSlots.PATIENCE_S = RedisSlots.PATIENCE_S, PATIENCE_S
    yield
    RedisSlots.PATIENCE_S = before


async def test_each_process_knows_the_streams_of_all(shared: str) -> None:
    async with started() as here, started() as there:
        slot = await claimed(here, 1, MARKET)
        await claimed(there, 1, SIGNALS)
        await claimed(there, 2, MARKET)
        for streams in (here, there):
            assert [stream.path for stream in await streams.of("1")] == [MARKET, SIGNALS]
            assert await streams.count() == 3
        assert (await there.of("1"))[0].opened_at == pytest.approx(slot.stream.opened_at, abs=1e-5)


async def test_stopped_process_is_forgotten_at_once(shared: str) -> None:
    async with started() as here:
        async with started() as there:
            await claimed(there, 1)
            assert await here.count() == 1
        assert (await here.count(), await here.of("1")) == (0, [])
    with Redis.from_url(shared) as client:
        assert client.keys("tickwire:streams:*") == []


async def test_limit_holds_over_both(shared: str) -> None:
    async with started() as here, started() as there:
        asked = [
            streams.claim("1", MARKET, 10, on_end=ignore) for _ in range(50) for streams in (here, there)
        ]
        answers = await asyncio.gather(*asked)
        slots = [answer for answer in answers if isinstance(answer, Slot)]
        assert len(slots) == 10
        assert (await refused(there)).open == 10
        slots[0].release()
        slots[1].release()
        await until(lambda: is_count(here, 8))
        await claimed(there)


async def is_count(streams: Any, count: int) -> bool:
    return bool(await streams.count() == count)


async def is_heard(ends: Sized, count: int) -> bool:
    return len(ends) == count


async def test_takeover_is_heard_in_the_other_process_without_waiting_for_a_beat(
    shared: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RedisSlots, "BEAT_EVERY_S", 60)
    async with started() as here, started() as there:
        ends: list[str] = []
        await claimed(here, path=MARKET, limit=2)
        await claimed(there, path=SIGNALS, limit=2, on_end=ends.append)
        with Redis.from_url(shared) as client:
            await until(lambda: are_listening(client, 2))
        await claimed(here, path=SIGNALS, limit=2, takeover=True)
        await until(lambda: is_heard(ends, 1))
        assert ends == ["taken_over"]
        assert [stream.path for stream in await there.of("1")] == [MARKET, SIGNALS]


async def are_listening(client: Any, count: int) -> bool:
    return len(client.pubsub_channels("tickwire:streams:ends:*")) == count


async def test_takeover_within_one_turn_is_heard_after_the_claim(shared: str) -> None:
    async with started() as here:
        ends: list[str] = []
        asked = [here.claim("1", MARKET, 1, takeover=True, on_end=ends.append) for _ in range(5)]
        assert all(isinstance(answer, Slot) for answer in await asyncio.gather(*asked))
        await until(lambda: is_heard(ends, 4))
        assert await is_count(here, 1)


async def test_lower_limit_ends_the_newest_of_all_processes_once(shared: str) -> None:
    async with started() as here, started() as there:
        ends: list[int] = []
        for number in range(10):
            streams = (here, there)[number % 2]
            await claimed(streams, on_end=lambda code, number=number: ends.append(number))
        await asyncio.gather(here.enforce("1", 3), there.enforce("1", 3))
        await until(lambda: is_heard(ends, 7))
        await there.enforce("1", 3)
        assert sorted(ends) == [3, 4, 5, 6, 7, 8, 9]
        assert await is_count(here, 3)


async def test_caller_who_gives_up_leaves_no_slot(shared: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RedisSlots, "BEAT_EVERY_S", 60)
    async with started() as here:
        leaving = asyncio.create_task(here.claim("1", MARKET, 1, on_end=ignore))
        await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.wait([leaving])
        await until(lambda: is_count(here, 0))


async def test_claims_of_one_turn_share_one_call(shared: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RedisSlots, "BEAT_EVERY_S", 60)
    async with started() as here:
        await claimed(here)
        with Redis.from_url(shared) as client:
            calls = called(client)
            await asyncio.gather(*(claimed(here, account_id) for account_id in range(100)))
            # One more for the beat with which each begins.
            assert called(client) - calls <= 2


def called(client: Any) -> int:
    return int(client.info("commandstats")["cmdstat_evalsha"]["calls"])


async def test_what_redis_forgot_of_a_process_is_told_again_with_its_age(shared: str) -> None:
    async with started() as here, started() as there:
        for streams in (here, there, here):
            await claimed(streams)
        with Redis.from_url(shared) as client:
            before = aged(client)
            client.flushall()
            await until(lambda: is_count(here, 3))
            assert aged(client) == before


def aged(client: Any) -> list[tuple[bytes, float]]:
    return list(client.zrange("tickwire:streams:account:1", 0, -1, withscores=True))


async def test_claims_on_a_redis_that_forgot_keep_their_order_and_find_what_is_open(
    shared: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RedisSlots, "BEAT_EVERY_S", 3600)
    monkeypatch.setattr("accounts.open_streams.redis_slots.MOST_AT_ONCE", 2)
    async with started() as here:
        await claimed(here, 1, limit=1)
        with Redis.from_url(shared) as client:
            client.flushall()
        asked = (here.claim(account, MARKET, 1, on_end=ignore) for account in ("2", "2", "2", "1"))
        answers = await asyncio.wait_for(asyncio.gather(*asked), PATIENCE_S)
        assert [isinstance(answer, Slot) for answer in answers] == [True, False, False, False]


async def test_slots_that_are_leaving_are_known(shared: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accounts.open_streams.redis_slots.MOST_AT_ONCE", 1)
    monkeypatch.setattr("accounts.open_streams.redis_slots.BREATH", 0)
    # Each call says how many Redis has.
    monkeypatch.setattr(RedisSlots, "BEAT_EVERY_S", 0)
    async with started() as here:
        slots = [await claimed(here) for _ in range(10)]
        with Redis.from_url(shared) as client:
            await until(lambda: is_count(here, 10))
            before = looked_through(client)
            await release(slots)
            await until(lambda: is_count(here, 0))
            assert looked_through(client) == before


def looked_through(client: Any) -> int:
    """How often Redis was asked for what it has of a process."""
    return int(client.info("commandstats").get("cmdstat_hscan", {"calls": 0})["calls"])


async def test_slots_that_are_handed_over_are_free_elsewhere_at_once(shared: str) -> None:
    async with started() as here, started() as there:
        # And more of others than are taken at once.
        await asyncio.gather(*(claimed(there, account) for account in range(2, 450)))
        slots = [await claimed(there, limit=3) for _ in range(3)]
        assert (await refused(here, limit=3)).open == 3
        for _ in range(2):
            await there.hand_over()
        assert await here.count() == 0
        for _ in range(3):
            await claimed(here, limit=3)
        assert (await refused(here, limit=3)).open == 3
        # Their sockets are closed only now.
        for slot in slots:
            slot.release()
        assert (await here.count(), (await refused(here, limit=3)).open) == (3, 3)


async def test_clients_that_can_go_on_elsewhere_are_asked_to_where_another_process_has_none(
    shared: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accounts.open_streams.redis_slots.FOR_S", 0)
    monkeypatch.setattr(RedisSlots, "BEAT_EVERY_S", 0.01)
    ends: list[tuple[int, str]] = []
    async with started() as here:
        for number in range(MORE + 1):
            slot = await claimed(here, number, on_end=lambda code, number=number: ends.append((number, code)))
            slot.goes_on = number % 10 == 0
        async with started() as there:
            await until(lambda: is_count(there, MORE - 5))
            # Their places are free, and no others are asked.
            await claimed(there, 0, limit=1)
    assert ends == [(number, "restarting") for number in range(0, MORE + 1, 10)]


async def test_who_asks_while_slots_are_handed_over_is_counted_here_alone(shared: str) -> None:
    async with started() as here, started() as there:
        await claimed(there, limit=1)
        await there.hand_over()
        await claimed(here, limit=1)
        before = value_of(stream_fallbacks)
        assert (await refused(there, limit=1)).open == 1
        await claimed(there, 2)
        assert await here.count() == 1
        # Redis answered all the time.
        assert value_of(stream_fallbacks) == before
