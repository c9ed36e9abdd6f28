"""The window in Redis: the same answers as in memory, on Redis' clock, many requests in one call."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import redis
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from accounts.limits.redis_window import SCRIPT, RedisWindow, WindowQuestion, fold, limit_fallbacks
from accounts.limits.window import MemoryWindow, Standing
from tests.accounts.counters import value_of
from tests.patience import PATIENCE_S, until
from tests.programs import services
from tests.programs.redis_group import FORGETFUL, RedisNode

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


async def admitted_of(window: RedisWindow, asked: int, limit: int) -> int:
    standings = await asyncio.gather(*(window.ask("account:1", limit, cost=1) for _ in range(asked)))
    return sum(standing.admitted for standing in standings)


def standings_of(script: Any, asked: list[Ask]) -> list[Standing]:
    """As the window asks for all of them in one call."""
    standings: dict[int, Standing] = {}
    runs = fold(
        WindowQuestion(*ask, partial(standings.__setitem__, place)) for place, ask in enumerate(asked)
    )
    numbers = [number for run in runs for number in (run.limit, run.cost * len(run.asking))]
    flat = script(keys=[run.key for run in runs], args=numbers)
    for run, *told in zip(runs, flat[::3], flat[1::3], flat[2::3], strict=True):
        for then, standing in zip(run.asking, run.standings(*told), strict=True):
            then(standing)
    return [standings[place] for place in range(len(asked))]


@examples(max_examples=100)
@given(turns)
def test_redis_and_memory_give_the_same_standings(store: Any, turns: list[tuple[int, list[Ask]]]) -> None:
    store.flushall()
    script, now_us = store.register_script(CLOCKED), 1_790_000_000_000_000
    memory = MemoryWindow(lambda: now_us * 1000)
    for step, asked in turns:
        now_us += step
        store.delete("test:clock")
        store.rpush("test:clock", *divmod(now_us, 1_000_000))
        found = standings_of(script, asked)
        # In memory they ask one by one, in the order in which they came.
        expected = [memory.count(*ask) for ask in asked]
        assert [(s.admitted, s.limit, s.used, round(s.frees_in)) for s in found] == [
            (s.admitted, s.limit, s.used, round(s.frees_in * 1e6)) for s in expected
        ]


class Request(NamedTuple):
    ask: Ask
    window: int
    """Of which process."""
    is_short: bool
    """It is told its standing by a callback, where others wait for it in a coroutine."""


requests = st.builds(Request, asks, st.integers(0, 1), st.booleans())


@examples(max_examples=40)
@given(st.lists(st.lists(requests, min_size=1, max_size=12), min_size=1, max_size=8), st.booleans())
def test_both_ways_give_each_request_what_asking_one_by_one_gives(
    url: str, store: Any, turns: list[list[Request]], is_flushed: bool
) -> None:
    store.flushall()
    if is_flushed:
        store.script_flush()
    told = asyncio.run(told_to(url, turns))
    one_by_one = MemoryWindow()
    order = [
        request.ask for turn in turns for window in (0, 1) for request in turn if request.window == window
    ]
    expected = [one_by_one.count(*ask) for ask in order]
    assert [(s.admitted, s.limit, s.used) for s in told] == [(s.admitted, s.limit, s.used) for s in expected]
    assert all(0 <= standing.frees_in <= 60 for standing in told)


async def told_to(url: str, turns: list[list[Request]]) -> list[Standing]:
    """Of two processes, where one asks when the other was answered, and each in several turns of its loop at
    once. Each request is told once."""
    windows, told = [RedisWindow(url), RedisWindow(url)], []
    for turn in turns:
        for number, window in enumerate(windows):
            told += await told_by(window, [each for each in turn if each.window == number])
    for window in windows:
        await window.close()
    return told


async def told_by(window: RedisWindow, asked: list[Request]) -> list[Standing]:
    window.PATIENCE_S = PATIENCE_S
    told: list[list[Standing]] = [[] for _ in asked]

    async def wait(ask: Ask, hear: Callable[[Standing], None]) -> None:
        hear(await window.ask(*ask))

    async with asyncio.TaskGroup() as waiting:
        for place, (ask, _, is_short) in enumerate(asked):
            if is_short and ask.cost:
                window.admit_later(ask.key, ask.limit, told[place].append)
            else:
                waiting.create_task(wait(ask, told[place].append))
                await asyncio.sleep(0)
    await until(lambda: all(told))
    assert {len(standings) for standings in told} <= {1}
    return [standing for (standing,) in told]


async def test_two_processes_share_out_each_slot_once(
    url: str, window: RedisWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = RedisWindow(url)
    told: list[Standing] = []
    for _ in range(20):
        for each in (window, other, window):
            each.admit_later("account:1", 50, told.append)
        await asyncio.sleep(0)
    await until(lambda: len(told) == 60)
    await other.close()
    assert sorted(standing.used for standing in told if standing.admitted) == list(range(1, 51))
    assert [standing.used for standing in told if not standing.admitted] == [50] * 10


async def test_standing_comes_later_and_never_at_once(window: RedisWindow) -> None:
    told: list[Standing] = []
    for each in (window, MemoryWindow()):
        each.admit_later("account:1", 1, told.append)
        assert not told
        await until(lambda: told)
        assert told.pop().admitted


async def test_one_who_breaks_keeps_nobody_from_the_answer(
    window: RedisWindow, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[Standing] = []
    window.admit_later("account:1", 5, told.append)
    window.admit_later("account:1", 5, lambda standing: 1 // 0)
    window.admit_later("account:1", 5, told.append)
    await until(lambda: len(told) == 2)
    assert [standing.used for standing in told] == [1, 3]
    assert "standing could not be delivered" in caplog.text
    assert (await window.ask("account:1", 5, cost=1)).used == 4


async def test_redis_killed_under_a_batch_answers_each_once_with_what_redis_had_admitted(
    tmp_path: Path,
) -> None:
    server = RedisNode(tmp_path, FORGETFUL)
    with server.running():
        window = RedisWindow(f"redis://127.0.0.1:{server.port}/0")
        window.PATIENCE_S = PATIENCE_S
        assert await admitted_of(window, 10, 40) == 10
        with server.client as operator:
            operator.execute_command("CLIENT", "PAUSE", 600_000, "ALL")
        told: list[tuple[int, Standing]] = []
        before = value_of(limit_fallbacks)
        for number in range(100):
            window.admit_later("account:1", 40, partial(note_told, told, number))
            # More turns than calls that may be under way.
            if number % 10 == 9:
                await asyncio.sleep(0)
        assert not told
        server.kill()
        await until(lambda: len(told) >= 100)
        await asyncio.sleep(0)
        await window.close()
    assert [number for number, _ in told] == list(range(100))
    assert [standing.used for _, standing in told] == [min(n, 40) for n in range(11, 111)]
    assert sum(standing.admitted for _, standing in told) == 30
    assert value_of(limit_fallbacks) == before + 100


def note_told(told: list[tuple[int, Standing]], number: int, standing: Standing) -> None:
    told.append((number, standing))


async def test_those_of_one_turn_share_a_call_and_those_who_come_meanwhile_the_next(
    window: RedisWindow, store: Any
) -> None:
    await window.ask("account:1", 999, cost=0)
    before = store.info("commandstats")["cmdstat_evalsha"]["calls"]
    assert await admitted_of(window, 100, 60) == 60
    assert store.info("commandstats")["cmdstat_evalsha"]["calls"] == before + 1
    store.execute_command("CLIENT", "PAUSE", 600_000, "WRITE")
    told: list[Standing] = []
    for _ in range(50):
        window.admit_later("account:1", 999, told.append)
        await asyncio.sleep(0)
    store.execute_command("CLIENT", "UNPAUSE")
    await until(lambda: len(told) == 50)
    assert [standing.used for standing in told] == list(range(61, 111))
    calls = store.info("commandstats")["cmdstat_evalsha"]["calls"] - before
    assert calls < 10


async def test_caller_who_gives_up_harms_nobody_else(window: RedisWindow) -> None:
    leaving, staying = (asyncio.create_task(window.ask("account:1", 2, cost=1)) for _ in range(2))
    await asyncio.sleep(0)
    leaving.cancel()
    assert (await staying).admitted


async def test_stamps_expire_with_the_window(window: RedisWindow, store: Any) -> None:
    await window.ask("account:1", 1, cost=1)
    stamped_ms = int(store.lindex(KEY, 0)) // 1000
    before_ms, left_ms, after_ms = redis_now_us(store) // 1000, store.pttl(KEY), redis_now_us(store) // 1000
    assert before_ms + left_ms <= stamped_ms + 61_001
    assert after_ms + left_ms >= stamped_ms + 60_999


# What the list holds after Redis' clock was set: the stamps of the minute before.
BEFORE = [HOUR_US - n * 500_000 for n in range(60, 0, -1)]
SET = {
    "back an hour": (BEFORE, 60),
    "back a little": ([*range(-20_000_000, -19_999_960), *range(10_000_000, 10_000_020)], 20),
    "forward an hour": ([stamp - 2 * HOUR_US for stamp in BEFORE], 60),
}


@pytest.mark.parametrize("how", SET)
async def test_clock_that_was_set_locks_nobody_out_and_keeps_what_is_past(
    window: RedisWindow, store: Any, how: str
) -> None:
    stamps, admitted = SET[how]
    now = redis_now_us(store)
    store.rpush(KEY, *(now + stamp for stamp in stamps))
    assert await admitted_of(window, 100, 60) == admitted
    standing = await window.ask("account:1", 60, cost=0)
    assert standing.used == 60
    assert 0 < standing.frees_in <= 60


async def reach_redis(window: RedisWindow) -> None:
    """A busy machine may need several times the patience for it."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            before = value_of(limit_fallbacks)
            await window.ask("account:2", 60, cost=0)
            if value_of(limit_fallbacks) == before:
                return
            await asyncio.sleep(0.05)


async def test_standstill_of_this_process_is_no_silence_of_redis(url: str, store: Any) -> None:
    store.flushall()
    window = RedisWindow(url)
    await reach_redis(window)
    before = value_of(limit_fallbacks)
    store.execute_command("CLIENT", "PAUSE", 200, "ALL")
    asked = asyncio.create_task(window.ask("account:1", 60, cost=1))
    await until(lambda: not window.calls.has_room(1))
    # The standstill, amid which Redis answers.
    store.ping()
    time.sleep(1.2 * SHIPPED_S)  # noqa: ASYNC251
    assert (await asked).used == 1
    assert value_of(limit_fallbacks) == before
    assert store.llen(KEY) == 1
    await window.close()


@pytest.fixture
async def silent_url() -> AsyncIterator[str]:
    """Accepts and reads, and never answers."""
    connections: set[asyncio.Task[Any] | None] = set()

    async def swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.add(asyncio.current_task())
        await reader.read()
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(swallow, "127.0.0.1", 0) as silent:
        yield f"redis://127.0.0.1:{silent.sockets[0].getsockname()[1]}/0"
        await until(lambda: all(each is None or each.done() for each in connections))


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
