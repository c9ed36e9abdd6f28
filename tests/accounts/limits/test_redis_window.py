"""The window in Redis: the same answers as in memory, on Redis' clock, many requests in one call."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import redis
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from accounts.limits.redis_window import SCRIPT, RedisWindow, limit_fallbacks
from accounts.limits.window import MemoryWindow
from tests.accounts.counters import value_of
from tests.patience import PATIENCE_S
from tests.programs import services

HOUR_US = 3_600_000_000
KEY = "tickwire:window:account:1"
SHIPPED_S = RedisWindow.PATIENCE_S

# The script reads the clock in one place; here it reads a list with the two numbers that TIME would give.
CLOCKED = SCRIPT.replace("redis.call('TIME')", "redis.call('LRANGE', 'test:clock', 0, -1)")


class Ask(NamedTuple):
    key: str
    limit: int
    cost: int


asks = st.builds(Ask, st.sampled_from("ab"), st.integers(1, 6), st.sampled_from([1, 1, 1, 0]))
steps_us = st.one_of(
    st.just(0), st.integers(0, 8_000_000), st.sampled_from([59_999_999, 60_000_000, 60_000_001])
)
turns = st.lists(st.tuples(steps_us, st.lists(asks, min_size=1, max_size=8)), min_size=1, max_size=30)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with services.redis(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture(scope="module")
def store(url: str) -> Iterator[Any]:
    with redis.Redis.from_url(url) as client:
        yield client


@pytest.fixture
async def window(url: str, store: Any, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RedisWindow]:
    """A machine busy with other things is no Redis that is away."""
    monkeypatch.setattr(RedisWindow, "PATIENCE_S", PATIENCE_S)
    store.flushall()
    opened = RedisWindow(url)
    yield opened
    await opened.close()


def redis_now_us(store: Any) -> int:
    seconds, microseconds = store.time()
    return int(seconds) * 1_000_000 + int(microseconds)


def put_stamps(store: Any, *shifts_us: int) -> None:
    now = redis_now_us(store)
    store.rpush(KEY, *(now + shift for shift in shifts_us))


async def admitted_of(window: RedisWindow, asked: int, limit: int) -> int:
    standings = await asyncio.gather(*(window.ask("account:1", limit, cost=1) for _ in range(asked)))
    return sum(standing.admitted for standing in standings)


@examples(max_examples=150)
@given(turns)
def test_redis_and_memory_give_the_same_standings(store: Any, turns: list[tuple[int, list[Ask]]]) -> None:
    store.flushall()
    script, now_us = store.register_script(CLOCKED), 1_790_000_000_000_000
    memory = MemoryWindow(lambda: now_us * 1000)
    for step, asked in turns:
        now_us += step
        store.delete("test:clock")
        store.rpush("test:clock", *divmod(now_us, 1_000_000))
        flat = script(keys=[ask.key for ask in asked], args=[n for ask in asked for n in ask[1:]])
        standings = [memory.count(*ask) for ask in asked]
        expected = [(s.admitted, s.used, round(s.frees_in * 1e6)) for s in standings]
        assert list(zip(flat[::3], flat[1::3], flat[2::3], strict=True)) == expected


def test_the_clock_of_the_script_was_replaced() -> None:
    assert "TIME" in SCRIPT
    assert "TIME" not in CLOCKED


async def test_requests_of_one_turn_share_one_call(window: RedisWindow, store: Any) -> None:
    await window.ask("account:1", 1, cost=0)
    calls_before = store.info("commandstats")["cmdstat_evalsha"]["calls"]
    assert await admitted_of(window, 100, 60) == 60
    assert store.info("commandstats")["cmdstat_evalsha"]["calls"] == calls_before + 1


async def test_each_request_of_a_shared_call_gets_its_own_standing(window: RedisWindow) -> None:
    a, b, again, look = await asyncio.gather(
        window.ask("account:1", 1, cost=1),
        window.ask("account:2", 5, cost=1),
        window.ask("account:1", 1, cost=1),
        window.ask("account:2", 5, cost=0),
    )
    assert [a.admitted, b.admitted, again.admitted] == [True, True, False]
    assert (a.limit, b.limit) == (1, 5)
    assert (b.used, b.remaining, look.used) == (1, 4, 1)


async def test_caller_who_gives_up_harms_nobody_else(window: RedisWindow) -> None:
    leaving, staying = (asyncio.create_task(window.ask("account:1", 2, cost=1)) for _ in range(2))
    await asyncio.sleep(0)
    leaving.cancel()
    assert (await staying).admitted


async def test_stamps_expire_with_the_window(window: RedisWindow, store: Any) -> None:
    await window.ask("account:1", 1, cost=1)
    assert 60_000 < store.pttl(KEY) <= 61_000


async def test_flushed_scripts_are_loaded_again(window: RedisWindow, store: Any) -> None:
    await window.ask("account:1", 5, cost=1)
    store.script_flush()
    before = value_of(limit_fallbacks)
    assert (await window.ask("account:1", 5, cost=1)).used == 2
    assert value_of(limit_fallbacks) == before


async def test_clock_stepped_back_an_hour_locks_nobody_out(window: RedisWindow, store: Any) -> None:
    # What the list holds after the step: the stamps of the minute before it, now an hour ahead.
    put_stamps(store, *(HOUR_US - n * 500_000 for n in range(60, 0, -1)))
    assert await admitted_of(window, 100, 60) == 60
    standing = await window.ask("account:1", 60, cost=0)
    assert standing.used == 60
    assert 0 < standing.frees_in <= 60


async def test_clock_stepped_back_a_little_keeps_what_is_past(window: RedisWindow, store: Any) -> None:
    put_stamps(store, *(-20_000_000 + n for n in range(40)), *(10_000_000 + n for n in range(20)))
    assert await admitted_of(window, 100, 60) == 20


async def test_clock_stepped_forward_an_hour_admits_one_more_window(window: RedisWindow, store: Any) -> None:
    put_stamps(store, *(-HOUR_US - n * 500_000 for n in range(60, 0, -1)))
    assert await admitted_of(window, 100, 60) == 60


async def test_nobody_there_is_counted_in_this_process(url: str) -> None:
    nobody = RedisWindow(f"redis://127.0.0.1:{services.free_port()}/0")
    before = value_of(limit_fallbacks)
    assert await admitted_of(nobody, 100, 60) == 60
    assert value_of(limit_fallbacks) == before + 100
    await nobody.close()


async def test_what_redis_admitted_counts_here_once_it_is_gone(tmp_path: Path) -> None:
    with services.redis(tmp_path) as url:
        windows = [RedisWindow(url), RedisWindow(url)]
        before = [await admitted_of(window, 30, 40) for window in windows]
        await windows[0].ask("account:1", 40, cost=0)
    after = [await admitted_of(window, 100, 40) for window in windows]
    for window in windows:
        await window.close()
    assert (before, after) == ([30, 10], [10, 30])


async def test_standstill_of_this_process_is_no_silence_of_redis(
    window: RedisWindow, store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await admitted_of(window, 1, 60)
    monkeypatch.setattr(RedisWindow, "PATIENCE_S", SHIPPED_S)
    before = value_of(limit_fallbacks)
    # Redis answers in the middle of the standstill.
    store.execute_command("CLIENT", "PAUSE", 200, "ALL")
    asked = asyncio.create_task(window.ask("account:1", 60, cost=1))
    await asyncio.sleep(0.05)
    time.sleep(1.2 * SHIPPED_S)  # noqa: ASYNC251 - the standstill
    assert (await asked).used == 2
    assert value_of(limit_fallbacks) == before


@pytest.fixture
async def silent_url() -> AsyncIterator[str]:
    """Accepts and reads, and never answers."""

    async def swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(swallow, "127.0.0.1", 0) as silent:
        yield f"redis://127.0.0.1:{silent.sockets[0].getsockname()[1]}/0"


async def test_silent_redis_keeps_nobody_waiting(silent_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    window = RedisWindow(silent_url)
    assert await asyncio.wait_for(admitted_of(window, 100, 60), PATIENCE_S) == 60
    # It was just asked in vain, so it is not asked again: that would take an hour now.
    monkeypatch.setattr(RedisWindow, "PATIENCE_S", 3600)
    assert await asyncio.wait_for(admitted_of(window, 10, 60), PATIENCE_S) == 0
    await window.close()


async def test_closing_answers_those_who_still_wait(silent_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RedisWindow, "PATIENCE_S", 3600)
    window = RedisWindow(silent_url)
    waiting = asyncio.create_task(window.ask("account:1", 1, cost=1))
    await asyncio.sleep(0)
    await window.close()
    assert (await asyncio.wait_for(waiting, PATIENCE_S)).admitted
