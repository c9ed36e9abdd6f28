"""Sentinel names the server, and another one when that fails. Real servers and real Sentinels."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest
from redis.exceptions import RedisError

from core.background import cancel_and_wait
from core.redis.connections import SentinelGroup, connect_redis, connect_redis_of_threads
from core.redis.urls import read_redis_address
from tests.patience import PATIENCE_S, until, wait_until
from tests.programs.redis_group import RedisGroup, RedisNode

pytestmark = pytest.mark.served

T = TypeVar("T")
AWAY = (RedisError, OSError)
# Of the product: so long it waits for a server that stands still, and the test tries again.
WAITS = {"socket_timeout": 0.5, "socket_connect_timeout": 0.5}


@pytest.fixture
def group(tmp_path: Path) -> Iterator[RedisGroup]:
    made = RedisGroup(tmp_path)
    with made.running():
        yield made


async def at_last(ask: Callable[[], Awaitable[T]]) -> T:
    """As soon as somebody answers."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            with suppress(*AWAY):
                return await ask()
            await asyncio.sleep(0.05)


def is_told(client: Any, fact: bytes) -> bool:
    with suppress(*AWAY):
        return bool(client.get("fact") == fact)
    return False


async def test_the_same_clients_go_on_with_the_new_master(group: RedisGroup) -> None:
    client, before = connect_redis(group.url, **WAITS), group.master
    of_threads = connect_redis_of_threads(group.url, **WAITS)
    await client.set("fact", "old")
    await until(lambda: is_told(of_threads, b"old"))
    before.kill()
    await asyncio.to_thread(group.wait_for_another, before)
    await at_last(lambda: client.set("fact", "new"))
    with group.master.client as at_master:
        assert at_master.get("fact") == b"new"
    await until(lambda: is_told(of_threads, b"new"))
    of_threads.close()
    await client.aclose()


async def test_master_that_wakes_up_late_is_not_written_to(group: RedisGroup) -> None:
    client, before = connect_redis(group.url, **WAITS), group.master
    await client.set("fact", "old")
    with before.stopped():
        await asyncio.to_thread(group.wait_for_another, before)
        await at_last(lambda: client.set("fact", "new"))
    # It is awake and still takes itself for the master, until the Sentinels tell it otherwise.
    fresh = connect_redis(group.url)
    assert await at_last(lambda: fresh.get("fact")) == b"new"
    await fresh.aclose()
    await client.aclose()


async def test_sentinels_that_are_gone_are_not_waited_for(group: RedisGroup) -> None:
    group.sentinels[0].kill()
    with group.sentinels[1].stopped():
        client = connect_redis(group.url, **WAITS)
        await at_last(lambda: client.set("fact", "told"))
        await client.aclose()
        of_threads = connect_redis_of_threads(group.url)
        await until(lambda: is_told(of_threads, b"told"))
        of_threads.close()


async def test_whenever_nobody_waits_any_more_nothing_is_left_open(
    group: RedisGroup, recwarn: pytest.WarningsRecorder
) -> None:
    address = read_redis_address(group.url)
    for turns in range(60):
        asking = asyncio.create_task(SentinelGroup(address).discover_master("prices"))
        for _ in range(turns):
            await asyncio.sleep(0)
        await cancel_and_wait(asking)
    gc.collect()
    assert [str(each.message) for each in recwarn if issubclass(each.category, ResourceWarning)] == []


async def test_without_a_master_it_is_said_why(group: RedisGroup) -> None:
    def wait_until_down(watching: RedisNode) -> None:
        with watching.client as sentinel:
            wait_until(lambda: sentinel.sentinel_master("prices")["is_sdown"])

    unknown = connect_redis(group.url.replace("/prices/", "/metals/"))
    with pytest.raises(RedisError, match="No Sentinel says where 'metals' is: No such master with that name"):
        await unknown.get("fact")
    for node in group.nodes:
        node.kill()
    for watching in group.sentinels:
        await asyncio.to_thread(wait_until_down, watching)
    client = connect_redis(group.url)
    with pytest.raises(RedisError, match="takes 'prices' for down, and no other server has taken over yet"):
        await client.get("fact")
