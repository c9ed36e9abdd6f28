from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from accounts.streams import FORGOTTEN_AFTER_S, OpenStreams
from tests import services

ROOT = Path(__file__).parents[2]
HEARD_WITHIN_S = 3.0
GONE_WITHIN_S = 5.0
OTHER_PROCESS = """
import asyncio, django
django.setup()
from accounts.streams import open_streams
async def live():
    await open_streams.start()
    for _ in range(10):
        open_streams.opened(7, "/ws/market")
    await asyncio.sleep(60)
asyncio.run(live())
"""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with services.redis(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture
def shared(url: str, settings: Any) -> str:
    settings.REDIS_URL = url
    with Redis.from_url(url) as client:
        client.flushall()
    return url


@pytest.fixture
def alone(settings: Any) -> None:
    settings.REDIS_URL = ""


@asynccontextmanager
async def started() -> AsyncIterator[OpenStreams]:
    streams = OpenStreams()
    await streams.start()
    try:
        yield streams
    finally:
        await streams.stop()


async def until_count(streams: OpenStreams, account_id: int, count: int, within_s: float) -> float:
    """How long it took until so many streams of an account were known."""
    started_at = time.monotonic()
    while len(await streams.of(account_id)) != count:
        assert time.monotonic() - started_at < within_s
        await asyncio.sleep(0.02)
    return time.monotonic() - started_at


@pytest.mark.usefixtures("alone")
async def test_stream_is_known_from_opened_to_closed() -> None:
    async with started() as streams:
        number = streams.opened(1, "/ws/market")
        streams.opened(2, "/ws/signals")
        (stream,) = await streams.of(1)
        assert (stream.account_id, stream.path) == (1, "/ws/market")
        streams.closed(number)
        assert [stream.account_id for stream in await streams.all()] == [2]


@pytest.mark.usefixtures("alone")
async def test_closing_twice_is_harmless() -> None:
    async with started() as streams:
        number = streams.opened(1, "/ws/market")
        streams.closed(number)
        streams.closed(number)
        assert await streams.all() == []


@pytest.mark.usefixtures("shared")
async def test_each_process_knows_the_streams_of_all() -> None:
    async with started() as here, started() as there:
        here.opened(1, "/ws/market")
        there.opened(1, "/ws/orderflow")
        there.opened(2, "/ws/signals")
        for streams in (here, there):
            await until_count(streams, 1, 2, HEARD_WITHIN_S)
            await until_count(streams, 2, 1, HEARD_WITHIN_S)


@pytest.mark.usefixtures("shared")
async def test_stopped_process_is_forgotten_at_once() -> None:
    async with started() as here:
        async with started() as there:
            there.opened(1, "/ws/market")
            await until_count(here, 1, 1, HEARD_WITHIN_S)
        assert await here.all() == []


async def test_killed_process_is_forgotten_within_five_seconds(shared: str) -> None:
    environment = os.environ | {"REDIS_URL": shared}
    process = subprocess.Popen([sys.executable, "-c", OTHER_PROCESS], cwd=ROOT, env=environment)  # noqa: ASYNC220
    try:
        async with started() as here:
            await until_count(here, 7, 10, 20)
            process.send_signal(signal.SIGKILL)
            assert await until_count(here, 7, 0, GONE_WITHIN_S) <= FORGOTTEN_AFTER_S + 0.5
            with Redis.from_url(shared) as client:
                assert client.scard("tickwire:streams") == 1
    finally:
        process.kill()
        process.wait()


async def test_looking_asks_redis_twice_however_much_it_holds(shared: str) -> None:
    with Redis.from_url(shared) as client:
        client.mset({f"tickwire:window:failures:{number}": 1 for number in range(20_000)})
        async with started() as here, started() as there:
            there.opened(1, "/ws/market")
            await until_count(here, 1, 1, HEARD_WITHIN_S)
            info: Any = client.info("stats")
            await here.all()
            after: Any = client.info("stats")
    # SMEMBERS, MGET and the INFO that counts; the rest is room for those who tell meanwhile.
    assert after["total_commands_processed"] - info["total_commands_processed"] <= 3 + 8


async def test_without_redis_this_process_alone_is_known_at_once(settings: Any) -> None:
    settings.REDIS_URL = f"redis://127.0.0.1:{services.free_port()}/0"
    async with started() as streams:
        streams.opened(1, "/ws/market")
        assert len(await asyncio.wait_for(streams.all(), 1)) == 1
