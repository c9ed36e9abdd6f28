"""Entries of a stream over one connection, whatever becomes of the connection."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
import redis
from redis.exceptions import RedisError

from core.redis.script_calls import StreamReads
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


def test_entries_come_in_their_order_and_no_more_than_asked_for(url: str, client: redis.Redis) -> None:
    assert read(url, lambda reads: reads.after("0-0"), SHORT_MS) == []
    add(client, 1, 2, 3, 4, 5)

    async def act(reads: StreamReads) -> list[list[int]]:
        return [await numbers_after(reads, last) for last in ("0-0", "3-0")]

    assert read(url, act) == [[1, 2, 3], [4, 5]]


async def asking(reads: StreamReads, client: redis.Redis) -> tuple[asyncio.Task[list[int]], str]:
    """A question that waits at the server, and its connection."""

    def waiting() -> list[str]:
        clients: Any = client.client_list()
        return [each["id"] for each in clients if each["cmd"] == "xread"]

    task = asyncio.create_task(numbers_after(reads, "0-0"))
    await until(lambda: len(waiting()) == 1)
    return task, waiting()[0]


def test_next_entry_is_waited_for(url: str, client: redis.Redis) -> None:
    async def act(reads: StreamReads) -> list[int]:
        question, _ = await asking(reads, client)
        add(client, 1)
        return await question

    assert read(url, act) == [1]


def test_lost_connection_is_told_and_the_next_question_is_answered(url: str, client: redis.Redis) -> None:
    async def act(reads: StreamReads) -> list[int]:
        question, connection = await asking(reads, client)
        client.client_kill_filter(_id=connection)
        with pytest.raises((RedisError, OSError)):
            await question
        add(client, 1)
        return await numbers_after(reads, "0-0")

    assert read(url, act) == [1]


def test_answer_to_a_question_that_was_given_up_is_not_taken_for_the_next(
    url: str, client: redis.Redis
) -> None:
    async def act(reads: StreamReads) -> list[int]:
        question, _ = await asking(reads, client)
        question.cancel()
        with pytest.raises(asyncio.CancelledError):
            await question
        add(client, 1, 2)
        return await numbers_after(reads, "1-0")

    assert read(url, act) == [2]


def test_refusal_and_a_redis_that_is_not_there_are_told(url: str, client: redis.Redis) -> None:
    client.set(STREAM, "no stream")

    async def act(reads: StreamReads) -> None:
        with pytest.raises(RedisError, match="WRONGTYPE|wrong kind"):
            await reads.after("0-0")

    read(url, act)

    async def ask_nobody(reads: StreamReads) -> None:
        with pytest.raises((RedisError, OSError)):
            await reads.after("0-0")

    read(f"redis://127.0.0.1:{services.free_port()}/0", ask_nobody)
