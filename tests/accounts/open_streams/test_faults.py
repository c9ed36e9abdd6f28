"""Without Redis each process counts alone, at once; with it again all count together and nobody has to go."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from redis import Redis

from accounts.open_streams.redis_slots import PIECE, Ask, RedisSlots, pause_after, stream_fallbacks
from accounts.open_streams.registry import OpenStreams
from accounts.open_streams.stream_slots import Slot
from core.clock import passed_ms
from tests import patience
from tests.accounts.counters import value_of
from tests.patience import PATIENCE_S
from tests.reliability.services.private_servers import PrivateRedis

from .claims import MARKET, SIGNALS, claimed, ignore, refused, started, until

pytestmark = pytest.mark.served

LIMIT = 3
PAUSE_MS = 3_200
"""Longer than a process may be silent."""


# What is asked just before a pause is waited for so long within it.
SHIPPED_S, BUSY_S = RedisSlots.PATIENCE_S, 20.0


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine busy with other things is no Redis that is away."""
    monkeypatch.setattr(RedisSlots, "PATIENCE_S", BUSY_S)


@contextmanager
def paused(redis: PrivateRedis) -> Iterator[None]:
    """Of which nobody is more patient than the service."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RedisSlots, "PATIENCE_S", SHIPPED_S)
        with redis.paused():
            yield


@pytest.fixture
def ends() -> list[str]:
    return []


async def last(pause_ms: int) -> None:
    over_ms = passed_ms() + pause_ms
    await patience.until(lambda: passed_ms() >= over_ms)


async def fill(streams: OpenStreams, ends: list[str], asked: int = 10) -> int:
    claims = (streams.claim("1", MARKET, LIMIT, on_end=ends.append) for _ in range(asked))
    return sum(isinstance(answer, Slot) for answer in await asyncio.gather(*claims))


async def is_shared(*all_streams: OpenStreams, count: int) -> bool:
    """Whether each process sees the slots of all."""
    return [len(await streams.of("1")) for streams in all_streams] == [count] * len(all_streams)


async def test_where_redis_never_was_each_process_counts_alone(frail: PrivateRedis, ends: list[str]) -> None:
    before = value_of(stream_fallbacks)
    async with started() as here, started() as there:
        assert (await fill(here, ends), await fill(there, ends)) == (LIMIT, LIMIT)
        assert value_of(stream_fallbacks) == before + 20
        assert (await refused(here, limit=LIMIT)).open == LIMIT
        assert (await here.count(), ends) == (LIMIT, [])


async def test_killed_redis_costs_no_stream_and_is_found_again(frail: PrivateRedis, ends: list[str]) -> None:
    with frail.running():
        async with started() as here, started() as there:
            assert (await fill(here, ends, 2), await fill(there, ends)) == (2, 1)
            frail.kill()
            # Each process has room again as far as it knows.
            assert (await fill(here, ends), await fill(there, ends)) == (1, 2)
            with frail.running():
                await until(lambda: is_shared(here, there, count=2 * LIMIT))
                assert (await fill(here, ends), await fill(there, ends)) == (0, 0)
            assert ends == []


async def test_takeover_and_lower_limit_hold_for_this_process_alone(frail: PrivateRedis) -> None:
    ends: list[str] = []
    with frail.running():
        async with started() as here:
            await claimed(here, limit=1, on_end=ends.append)
            frail.kill()
            await claimed(here, limit=1, takeover=True, on_end=ends.append)
            await here.enforce("1", 0)
            await asyncio.sleep(0)
    assert ends == ["taken_over", "stream_limit_exceeded"]


async def test_what_came_and_went_without_redis_is_told(frail: PrivateRedis) -> None:
    with frail.running():
        async with started() as here, started() as there:
            leaving, _ = await claimed(here), await claimed(here)
            with paused(frail):
                assert await here.count() == 2
                leaving.release()
                await claimed(here, path=SIGNALS)
            await until(lambda: are_open(there, MARKET, SIGNALS))


async def are_open(streams: OpenStreams, *paths: str) -> bool:
    return [stream.path for stream in await streams.of("1")] == list(paths)


async def test_paused_redis_takes_no_slot_and_keeps_nobody_waiting(
    frail: PrivateRedis, ends: list[str]
) -> None:
    with frail.running():
        async with started() as here, started() as there:
            assert (await fill(here, ends, 2), await fill(there, ends)) == (2, 1)
            with paused(frail):
                await asyncio.wait_for(asyncio.gather(fill(here, ends), fill(there, ends)), PATIENCE_S)
                await last(PAUSE_MS)
            await until(lambda: is_shared(here, there, count=2 * LIMIT))
            assert ends == []


async def test_silent_redis_keeps_nobody_waiting_twice(
    frail: PrivateRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    with frail.running():
        async with started() as here:
            with paused(frail):
                await claimed(here)
                # Asking again would take an hour now.
                monkeypatch.setattr(RedisSlots, "PATIENCE_S", 3600)
                await asyncio.wait_for(claimed(here), PATIENCE_S)


async def test_full_redis_is_answered_from_this_process(frail: PrivateRedis, ends: list[str]) -> None:
    with frail.running():
        async with started() as here:
            with Redis.from_url(frail.url) as client:
                client.config_set("maxmemory-policy", "noeviction")
                client.config_set("maxmemory", 1)
                assert await fill(here, ends) == LIMIT
                client.config_set("maxmemory", 0)
            await until(lambda: is_shared(here, count=LIMIT))


async def test_claim_that_waits_is_answered_when_the_process_stops(frail: PrivateRedis) -> None:
    with frail.running():
        async with started() as here:
            with paused(frail):
                waiting = asyncio.create_task(here.claim("1", MARKET, 1, on_end=ignore))
                await asyncio.sleep(0.05)
                await here.stop()
                assert isinstance(await asyncio.wait_for(waiting, PATIENCE_S), Slot)


MANY = 400


async def is_told(streams: OpenStreams, client: Any, count: int) -> bool:
    """Whether Redis has as many, by its own account and by what each account has."""
    per_account = sum(client.zcard(key) for key in client.keys("tickwire:streams:account:*"))
    return bool(await streams.count() == per_account == count)


class Told:
    """How many slots each call told Redis of."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pieces: list[int] = []
        call = RedisSlots.call

        async def noted(slots: RedisSlots, asks: list[Ask]) -> Any:
            self.pieces += [len(ask[1]) for ask in asks if ask[0] == "tell"]
            return await call(slots, asks)

        monkeypatch.setattr(RedisSlots, "call", noted)


async def test_many_slots_are_told_in_pieces_and_none_is_missing(
    frail: PrivateRedis, ends: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with frail.running(), Redis.from_url(frail.url) as client:
        async with started() as here, started() as there:
            for streams in (here, there):
                for number in range(MANY):
                    await claimed(streams, number, on_end=ends.append)
            told = Told(monkeypatch)
            client.flushall()
            await until(lambda: is_told(here, client, 2 * MANY))
            assert max(told.pieces) <= PIECE
            assert sum(told.pieces) >= 2 * MANY
            assert ends == []


def test_pauses_between_pieces_are_as_long_as_redis_is_busy_and_no_two_alike() -> None:
    pauses = [pause_after(0.010) for _ in range(1_000)]
    assert 0.045 <= min(pauses) < 0.055
    assert 0.125 < max(pauses) <= 0.135
    assert len(set(pauses)) > 900
    assert min(pause_after(0.100) for _ in range(100)) > max(pauses)


async def test_claim_finds_the_slots_of_its_process_that_are_not_told_yet(
    frail: PrivateRedis, ends: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accounts.open_streams.redis_slots.BREATH", 1_000)
    with frail.running(), Redis.from_url(frail.url) as client:
        async with started() as here:
            for number in range(MANY):
                await claimed(here, number + 2, on_end=ends.append)
            assert await fill(here, ends) == LIMIT
            client.flushall()
            assert await fill(here, ends) == 0
            await until(lambda: knows(here, client))
            # Few are told by now, and this account is among the last.
            assert await fill(here, ends) == 0
            assert len(await here.of("1")) == LIMIT


async def knows(streams: OpenStreams, client: Any) -> bool:
    return bool(client.exists("tickwire:streams:beats"))


async def test_what_ended_while_it_was_told_does_not_come_back(frail: PrivateRedis, ends: list[str]) -> None:
    with frail.running(), Redis.from_url(frail.url) as client:
        async with started() as here:
            slots = [await claimed(here, number, on_end=ends.append) for number in range(MANY)]
            frail.kill()
            assert await here.count() == MANY
            with frail.running():
                for slot in slots[::2]:
                    slot.release()
                await until(lambda: is_told(here, client, MANY // 2))


async def test_pause_amid_the_telling_costs_nothing(frail: PrivateRedis, ends: list[str]) -> None:
    with frail.running(), Redis.from_url(frail.url) as client:
        async with started() as here, started() as there:
            slots = [await claimed(here, number, on_end=ends.append) for number in range(MANY)]
            client.flushall()
            await until(lambda: knows(here, client))
            with paused(frail):
                await last(1_000)
                for slot in slots[:10]:
                    slot.release()
                await claimed(here, MANY)
            await until(lambda: is_told(there, client, MANY - 9))
            assert ends == []
