"""Entries of a stream over one connection, whatever becomes of the connection."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from redis.exceptions import RedisError

from core.redis.stream_reads import StreamReads
from tests.patience import PATIENCE_S, until
from tests.programs import services

STREAM, COUNT = "stream", 3
SHORT_MS, LONG_MS = 50, int(PATIENCE_S * 1000)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with services.redis(tmp_path_factory.mktemp("reads")) as address:
        yield address


@pytest.fixture
def client(url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(url) as client:
        client.flushdb()
        yield client


def add(client: redis.Redis, *numbers: int) -> None:
    for number in numbers:
        client.xadd(STREAM, {"of": str(number)}, id=f"{number}-0")


def read(url: str, act: Callable[[StreamReads], Awaitable[Any]], block_ms: int = LONG_MS) -> Any:
    async def run() -> Any:
        reads = StreamReads(url, STREAM, COUNT, block_ms)
        try:
            return await act(reads)
        finally:
            await reads.close()

    return asyncio.run(run())


async def numbers_after(reads: StreamReads, last: str) -> list[int]:
    return [int(entry.fields[1]) for entry in await reads.after(last)]


def readers_that_wait(client: redis.Redis) -> list[str]:
    clients: Any = client.client_list()
    return [each["id"] for each in clients if each["cmd"] == "xread"]


def test_entries_come_in_their_order_and_no_more_than_asked_for(url: str, client: redis.Redis) -> None:
    add(client, 1, 2, 3, 4, 5)

    async def act(reads: StreamReads) -> list[list[int]]:
        return [await numbers_after(reads, last) for last in ("0-0", "3-0")]

    assert read(url, act) == [[1, 2, 3], [4, 5]]


def test_next_entry_is_waited_for(url: str, client: redis.Redis) -> None:
    async def act(reads: StreamReads) -> list[int]:
        waiting = asyncio.create_task(numbers_after(reads, "0-0"))
        await until(lambda: len(readers_that_wait(client)) == 1)
        add(client, 1)
        return await waiting

    assert read(url, act) == [1]


def test_where_nothing_comes_nothing_is_returned(url: str, client: redis.Redis) -> None:
    assert read(url, lambda reads: reads.after("0-0"), SHORT_MS) == []


def test_lost_connection_is_told_and_the_next_question_is_answered(url: str, client: redis.Redis) -> None:
    async def act(reads: StreamReads) -> list[int]:
        waiting = asyncio.create_task(reads.after("0-0"))
        await until(lambda: len(readers_that_wait(client)) == 1)
        client.client_kill_filter(_id=readers_that_wait(client)[0])
        with pytest.raises((RedisError, OSError)):
            await waiting
        add(client, 1)
        return await numbers_after(reads, "0-0")

    assert read(url, act) == [1]


def test_answer_to_a_question_that_was_given_up_is_not_taken_for_the_next(
    url: str, client: redis.Redis
) -> None:
    async def act(reads: StreamReads) -> list[int]:
        waiting = asyncio.create_task(reads.after("0-0"))
        await until(lambda: len(readers_that_wait(client)) == 1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        add(client, 1, 2)
        return await numbers_after(reads, "1-0")

    assert read(url, act) == [2]


def test_refusal_is_told(url: str, client: redis.Redis) -> None:
    client.set(STREAM, "no stream")

    async def act(reads: StreamReads) -> str:
        with pytest.raises(RedisError) as refused:
            await reads.after("0-0")
        return str(refused.value)

    assert "WRONGTYPE" in read(url, act) or "wrong kind" in read(url, act)


def test_redis_that_is_not_there_is_told(tmp_path: Path) -> None:
    with services.redis(tmp_path) as address:
        pass

    async def act(reads: StreamReads) -> None:
        with pytest.raises((RedisError, OSError)):
            await reads.after("0-0")

    read(address, act)
