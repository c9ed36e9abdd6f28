"""Calls of a script over one connection: each hears once what became of it, in order, whatever fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis
from redis.exceptions import NoScriptError, RedisError, ResponseError

from core.redis.script_calls import ScriptCalls
from tests.patience import PATIENCE_S, until
from tests.programs import services
from tests.programs.redis_group import FORGETFUL, RedisGroup, RedisNode

pytestmark = pytest.mark.served

# It notes each call, and fails where it is asked to.
SCRIPT = """
if ARGV[1] == '13' then return redis.error_reply('ERR unlucky') end
redis.call('RPUSH', KEYS[1], ARGV[1])
return {tonumber(ARGV[1]), redis.call('LLEN', KEYS[1])}
"""
KEY = "calls"
Heard = list[tuple[int, Any]]


class NumberCaller:
    """Calls with numbers, and notes what is heard of each."""

    def __init__(self, url: str, patience_s: float = PATIENCE_S) -> None:
        self.calls = ScriptCalls(url, SCRIPT, lambda: patience_s)
        self.heard: Heard = []

    def call(self, *numbers: int) -> None:
        for number in numbers:
            self.calls.call([KEY], [number], partial(self._hear, number))

    def _hear(self, number: int, outcome: Any) -> None:
        self.heard.append((number, outcome))

    async def hear(self, count: int) -> Heard:
        await until(lambda: len(self.heard) >= count)
        # What would come twice comes by now.
        await asyncio.sleep(0)
        return self.heard

    async def get(self, number: int) -> Any:
        before = len(self.heard)
        self.call(number)
        return (await self.hear(before + 1))[-1][1]

    async def get_at_last(self, number: int) -> list[int]:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                outcome = await self.get(number)
                if isinstance(outcome, list):
                    return outcome
                await asyncio.sleep(0.05)

    @property
    def numbers(self) -> list[int]:
        return [number for number, _ in self.heard]


@asynccontextmanager
async def calling(url: str, patience_s: float = PATIENCE_S) -> AsyncIterator[NumberCaller]:
    caller = NumberCaller(url, patience_s)
    yield caller
    await caller.calls.close()


Answering = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(answer: Answering) -> AsyncIterator[str]:
    """Until its connections have ended."""
    ended: list[asyncio.Future[None]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        end: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        ended.append(end)
        await answer(reader, writer)
        writer.close()
        await writer.wait_closed()
        end.set_result(None)

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}/0"
        await asyncio.gather(*ended)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with services.redis(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture
def store(url: str) -> Iterator[Any]:
    with redis.Redis.from_url(url) as client:
        client.flushall()
        client.script_flush()
        yield client


def are_faults(heard: Heard) -> bool:
    return all(isinstance(outcome, RedisError | OSError) for _, outcome in heard)


async def test_outcomes_come_in_order_over_one_connection_and_one_task(url: str, store: Any) -> None:
    before = store.info("stats")["total_connections_received"]
    tasks = len(asyncio.all_tasks())
    async with calling(url) as caller:
        for turn in range(5):
            caller.call(*range(100, 120))
            assert len(asyncio.all_tasks()) == tasks + 1
            await caller.hear(20 * (turn + 1))
        assert caller.heard == [
            (100 + n, [100 + n, 20 * turn + n + 1]) for turn in range(5) for n in range(20)
        ]
    assert store.info("stats")["total_connections_received"] == before + 1


async def test_calls_are_encrypted_where_the_address_says_so(encrypted: tuple[int, Path]) -> None:
    port, certificate = encrypted
    async with calling(f"rediss://127.0.0.1:{port}/0?ssl_ca_certs={certificate}") as caller:
        caller.call(*range(20, 60))
        assert await caller.hear(40) == [(20 + n, [20 + n, n + 1]) for n in range(40)]


async def test_an_error_of_the_script_is_the_outcome_of_its_own_call_alone(url: str, store: Any) -> None:
    async with calling(url) as caller:
        caller.call(12, 13, 14)
        (_, first), (_, unlucky), (_, last) = await caller.hear(3)
    assert (first, last) == ([12, 1], [14, 2])
    assert isinstance(unlucky, ResponseError)


async def test_a_flush_of_scripts_changes_neither_outcomes_nor_order(url: str, store: Any) -> None:
    async with calling(url) as caller:
        for turn in range(1, 4):
            store.script_flush()
            caller.call(1, 2, 3)
            await caller.hear(3 * turn)
        assert caller.heard == [(n, [n, 3 * turn + n]) for turn in range(3) for n in (1, 2, 3)]


async def test_nothing_may_overtake_calls_that_are_repeated() -> None:
    met: asyncio.Queue[bytes] = asyncio.Queue()
    told = asyncio.Event()

    async def forget(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Knows no script, says so of the first call at once and of the second when it is told to."""
        met.put_nowait(await reader.read(65536))
        writer.write(b"-NOSCRIPT No matching script.\r\n")
        await told.wait()
        writer.write(b"-NOSCRIPT No matching script.\r\n")
        met.put_nowait(await reader.read(65536))
        writer.write(b"+loaded\r\n:1\r\n:2\r\n")
        await reader.read()

    async with serving(forget) as forgetful, calling(forgetful) as caller:
        caller.call(1, 2)
        first = await met.get()
        await until(lambda: not caller.calls.has_room(9))
        told.set()
        assert await caller.hear(2) == [(1, 1), (2, 2)]
        # Both again, behind the script.
        assert (await met.get()).partition(b"EVALSHA")[2] == first.partition(b"EVALSHA")[2]
        assert caller.calls.has_room(1)


async def test_a_user_who_may_not_load_it_hears_so(tmp_path: Path) -> None:
    server = RedisNode(tmp_path, FORGETFUL)
    with server.running():
        with server.client as operator:
            operator.execute_command("ACL", "SETUSER", "ada", "on", ">s/cret", "~*", "+evalsha", "+eval")
        async with calling(f"redis://ada:s%2Fcret@127.0.0.1:{server.port}/0") as caller:
            assert isinstance(await caller.get(1), NoScriptError)
            with server.client as operator:
                operator.execute_command("ACL", "SETUSER", "ada", "+script|load", "+rpush", "+llen")
            assert await caller.get(2) == [2, 1]


async def test_killed_in_the_middle_every_call_hears_once(tmp_path: Path) -> None:
    server = RedisNode(tmp_path, FORGETFUL)
    with server.running():
        async with calling(f"redis://127.0.0.1:{server.port}/0") as caller:
            assert await caller.get(1) == [1, 1]
            with server.client as operator:
                operator.execute_command("CLIENT", "PAUSE", 600_000, "ALL")
            caller.call(*range(100, 150))
            await asyncio.sleep(0)
            caller.call(*range(150, 200))
            assert caller.numbers == [1]
            server.kill()
            heard = (await caller.hear(101))[1:]
            assert caller.numbers == [1, *range(100, 200)]
            assert are_faults(heard)
            server.start()
            assert await caller.get(2) == [2, 1]


async def test_a_connection_that_was_closed_meanwhile_costs_no_call(url: str, store: Any) -> None:
    async with calling(url) as caller:
        assert await caller.get(1) == [1, 1]
        store.execute_command("CLIENT", "KILL", "SKIPME", "yes")
        await until(lambda: len(asyncio.all_tasks()) == 1)
        assert await caller.get(2) == [2, 2]


async def test_nobody_there_is_heard(store: Any) -> None:
    async with calling(f"redis://127.0.0.1:{services.free_port()}/0") as caller:
        caller.call(1, 2)
        assert are_faults(await caller.hear(2))
        caller.call(3)
        assert are_faults(await caller.hear(3))
        assert caller.numbers == [1, 2, 3]


@pytest.fixture
async def silent_url() -> AsyncIterator[str]:
    async def swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Accepts and reads, and never answers."""
        await reader.read()

    async with serving(swallow) as url:
        yield url


async def test_silence_is_heard_when_patience_ends(silent_url: str) -> None:
    began_s = asyncio.get_running_loop().time()
    async with calling(silent_url, patience_s=0.2) as caller:
        caller.call(1, 2)
        assert are_faults(await caller.hear(2))
    assert caller.numbers == [1, 2]
    assert asyncio.get_running_loop().time() - began_s > 0.1


async def test_late_answers_reach_nobody(tmp_path: Path) -> None:
    server = RedisNode(tmp_path, FORGETFUL)
    with server.running():
        async with calling(f"redis://127.0.0.1:{server.port}/0", patience_s=1.0) as caller:
            with server.stopped():
                caller.call(1, 2)
                assert are_faults(await caller.hear(2))
            # Perhaps Redis has run those by now: the answer to this one is its own in any case.
            assert (await caller.get_at_last(3))[0] == 3
            assert caller.numbers[:2] == [1, 2]
            assert set(caller.numbers[2:]) == {3}


async def test_closing_is_heard_by_those_who_wait(silent_url: str) -> None:
    async with calling(silent_url) as caller:
        caller.call(1, 2)
        await asyncio.sleep(0)
    assert caller.numbers == [1, 2]
    assert are_faults(caller.heard)


async def test_what_hears_runs_in_no_context_of_a_caller(url: str, store: Any) -> None:
    request: ContextVar[str] = ContextVar("request")
    met: list[str] = []
    async with calling(url) as caller:
        request.set("the first")
        caller.calls.call([KEY], [1], lambda outcome: met.append(request.get("nobody's")))
        await until(lambda: met)
    assert met == ["nobody's"]


async def test_a_master_that_became_a_replica_is_left(tmp_path: Path) -> None:
    before, after = (RedisNode(tmp_path / name, FORGETFUL) for name in ("before", "after"))
    with before.running(), after.running():
        async with calling(f"redis://127.0.0.1:{before.port}/0") as caller:
            assert await caller.get(1) == [1, 1]
            with before.client as told:
                made = told.info("stats")["total_connections_received"]
                told.replicaof("127.0.0.1", after.port)
                await until(lambda: before.is_in_step)
                assert isinstance(await caller.get(2), RedisError)
                told.replicaof("NO", "ONE")
                assert await caller.get(3) == [3, 1]
                assert told.info("stats")["total_connections_received"] > made


async def test_sentinel_names_the_next_one(tmp_path: Path) -> None:
    group = RedisGroup(tmp_path)
    with group.running():
        async with calling(group.url, patience_s=2.0) as caller:
            assert (await caller.get_at_last(1))[0] == 1
            before = group.master
            before.kill()
            await asyncio.to_thread(group.wait_for_another, before)
            assert (await caller.get_at_last(2))[0] == 2
            with group.master.client as at_master:
                assert at_master.lrange(KEY, -1, -1) == [b"2"]
