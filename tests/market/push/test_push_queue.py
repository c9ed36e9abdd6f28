"""From a web process to the engine's: whatever dies, a request is worked once at most and nobody hangs."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from core.background import cancel_and_wait
from core.redis.connections import key_of
from market.engine.push_queue import (
    MAX_WAITING,
    REQUESTS,
    IngestUnavailable,
    NothingKept,
    PushQueue,
    PushRequest,
    encode,
    read_request,
)
from market.prices.records import Tick
from tests.patience import PATIENCE_S, until
from tests.reliability.services.private_servers import PrivateRedis

pytestmark = pytest.mark.served

ROOT = Path(__file__).resolve().parents[3]
TICK = Tick("EURUSD", 1.0841, 1.0843, 1_795_000_000_000, 2.5, -1, 1.0842, 7)

# An engine that notes what it begins, and with the origin "slow" does not come to an end.
ENGINE = """
import asyncio, sys, time
from core.redis.connections import key_of
from market.engine.push_queue import PushQueue
from tests.patience import PATIENCE_S
def take(origin, ticks, sent_ms, key):
    print(origin, flush=True)
    time.sleep(30 if origin == "slow" else 0)
    return [None] * len(ticks)
async def main():
    print("ready", flush=True)
    await PushQueue(sys.argv[1]).serve(take)
asyncio.run(main())
"""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateRedis]:
    private = PrivateRedis(tmp_path_factory.mktemp("redis"))
    with private.running():
        yield private


@pytest.fixture
def redis(running: PrivateRedis) -> PrivateRedis:
    with running.client as client:
        client.flushdb()
    return running


class Engine:
    """Takes what is sent and notes it."""

    def __init__(self) -> None:
        self.worked: list[tuple[str, list[Tick]]] = []
        self.sent_ms, self.key = 0, ""

    def take(self, origin: str, ticks: list[Tick], sent_ms: int, key: str) -> list[str | None]:
        self.worked.append((origin, ticks))
        self.sent_ms, self.key = sent_ms, key
        if origin == "faulty":
            raise ValueError("this one cannot be worked")
        if origin == "full":
            raise NothingKept
        return ["crossed" if tick.ask < tick.bid else None for tick in ticks]


@asynccontextmanager
async def sending(redis: PrivateRedis, patience_s: float = PATIENCE_S) -> AsyncIterator[PushQueue]:
    inbox = PushQueue(redis.url, patience_s)
    await inbox.start()
    try:
        yield inbox
    finally:
        await inbox.stop()


@asynccontextmanager
async def serving(redis: PrivateRedis, engine: Engine) -> AsyncIterator[None]:
    inbox = PushQueue(redis.url)
    task = asyncio.create_task(inbox.serve(engine.take))
    try:
        yield
    finally:
        await cancel_and_wait(task)
        await inbox.stop()


async def answered(asked: Awaitable[Any]) -> bool:
    try:
        await asyncio.wait_for(asked, PATIENCE_S)
    except IngestUnavailable:
        return False
    return True


async def until_taken(inbox: PushQueue, origin: str) -> None:
    """However often a machine that is busy, or a Redis that comes back, needs to be asked."""
    async with asyncio.timeout(PATIENCE_S):
        while not await answered(inbox.send(origin, [TICK])):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.05)


async def test_verdicts_come_back_in_the_order_of_the_ticks(redis: PrivateRedis) -> None:
    engine, crossed = Engine(), Tick("EURUSD", 2.0, 1.0, 1)
    async with sending(redis) as inbox, serving(redis, engine):
        assert await inbox.send("push:desk", [TICK, crossed, TICK]) == [None, "crossed", None]
        assert await inbox.send("push:desk", [], TICK.time_ms, "tw_ingest_Desk0001") == []
    assert engine.worked == [("push:desk", [TICK, crossed, TICK]), ("push:desk", [])]
    assert (engine.sent_ms, engine.key) == (TICK.time_ms, "tw_ingest_Desk0001")


class FormerRequest(msgspec.Struct, array_like=True):
    """As the version before has it."""

    number: int
    reply_to: str
    origin: str
    ticks: list[Tick]
    sent_ms: int = 0


def test_requests_pass_between_this_version_and_the_one_before() -> None:
    old = FormerRequest(1, "here", "desk", [TICK], TICK.time_ms)
    new = PushRequest(1, "here", "desk", [TICK], TICK.time_ms, "tw_ingest_Desk0001")

    assert read_request(encode(old)) == PushRequest(1, "here", "desk", [TICK], TICK.time_ms, "")
    assert msgspec.msgpack.decode(encode(new), type=FormerRequest) == old


async def test_two_engines_work_each_request_once_and_each_sender_gets_its_own(redis: PrivateRedis) -> None:
    engines = Engine(), Engine()
    async with (
        sending(redis) as one,
        sending(redis) as other,
        serving(redis, engines[0]),
        serving(redis, engines[1]),
    ):
        asked = [
            inbox.send(f"{name}:{number}", [TICK] * number)
            for name, inbox in (("one", one), ("other", other))
            for number in range(100)
        ]
        answers = await asyncio.gather(*asked)
    assert [len(codes) for codes in answers] == [*range(100), *range(100)]
    worked = [origin for engine in engines for origin, _ in engine.worked]
    assert sorted(worked) == sorted(f"{name}:{number}" for name in ("one", "other") for number in range(100))


async def test_request_that_breaks_the_engine_or_has_no_room_is_unavailable_and_the_next_is_worked(
    redis: PrivateRedis, caplog: pytest.LogCaptureFixture
) -> None:
    async with sending(redis) as inbox, serving(redis, Engine()):
        for origin in ("faulty", "full"):
            assert not await answered(inbox.send(origin, [TICK]))
        # A service that is full is sent thousands a second.
        assert [record.args for record in caplog.records if record.exc_info] == [("faulty",)]
        assert await inbox.send("push:desk", [TICK]) == [None]


async def test_request_whose_sender_gave_up_is_not_worked_later(redis: PrivateRedis) -> None:
    engine = Engine()
    async with sending(redis, patience_s=0.2) as impatient, sending(redis) as inbox:
        with redis.client as client:
            # A busy machine may not get as far as to send it.
            while client.llen(key_of(REQUESTS)) == 0:
                assert not await answered(impatient.send("late", [TICK]))
        await until_expired(redis, 0.2)
        async with serving(redis, engine):
            assert await inbox.send("push:desk", [TICK]) == [None]
    assert [origin for origin, _ in engine.worked] == ["push:desk"]


async def until_expired(redis: PrivateRedis, patience_s: float) -> None:
    """Whatever was sent before this: on a busy machine Redis may have come to it late."""
    with redis.client as client:

        def now_s() -> float:
            seconds, microseconds = client.time()
            return float(seconds + microseconds / 1e6)

        until_s = now_s() + patience_s
        await until(lambda: now_s() > until_s)


@pytest.mark.parametrize(("until_us", "is_taken"), [(2**52, False), (1, True)])
async def test_queue_that_is_full_of_what_is_waited_for_refuses_at_once(
    redis: PrivateRedis, until_us: int, is_taken: bool
) -> None:
    with redis.client as client:
        client.rpush(key_of(REQUESTS), *[f"{until_us}:".encode()] * MAX_WAITING)
    async with sending(redis, patience_s=600) as inbox:
        if not is_taken:
            assert not await answered(inbox.send("push:desk", []))
            return
        async with serving(redis, Engine()):
            assert await inbox.send("push:desk", [TICK]) == [None]


async def test_answers_to_a_process_that_is_no_more_go_away(redis: PrivateRedis) -> None:
    with redis.client as client:
        async with sending(redis, patience_s=2 * PATIENCE_S) as inbox:
            asked = asyncio.create_task(answered(inbox.send("push:desk", [])))
            await until(lambda: client.llen(key_of(REQUESTS)) == 1)
        # Its sender is told when it stops, before its patience is at an end.
        assert not await asked
        async with serving(redis, Engine()):
            await until(lambda: client.llen(key_of(REQUESTS)) == 0 and client.dbsize() == 1)
        (replies,) = client.keys()
        assert 0 < client.ttl(replies) <= 10


@pytest.fixture
def engine_process(redis: PrivateRedis, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """An engine of its own, and the file in which it notes what it begins."""
    notes = tmp_path / "notes"
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "config.settings"}
    with notes.open("wb") as out:
        command = [sys.executable, "-c", ENGINE, redis.url]
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=out)
    yield process, notes
    process.kill()
    process.wait()


async def test_request_that_a_killed_engine_had_begun_is_not_begun_again(
    redis: PrivateRedis, engine_process: tuple[subprocess.Popen[bytes], Path]
) -> None:
    process, notes = engine_process
    successor = Engine()
    await until(lambda: "ready" in notes.read_text())
    async with sending(redis) as inbox:
        asked = asyncio.create_task(answered(inbox.send("slow", [TICK])))
        await until(lambda: "slow" in notes.read_text())
        process.send_signal(signal.SIGKILL)
        async with serving(redis, successor):
            for _ in range(3):
                assert await inbox.send("push:desk", [TICK]) == [None]
        assert not asked.done()
    assert not await asked
    assert [origin for origin, _ in successor.worked] == ["push:desk"] * 3


async def test_engine_that_was_stopped_works_off_nothing_old(
    redis: PrivateRedis, engine_process: tuple[subprocess.Popen[bytes], Path]
) -> None:
    process, notes = engine_process
    await until(lambda: "ready" in notes.read_text())
    async with sending(redis) as inbox, sending(redis, patience_s=0.2) as impatient:
        assert await inbox.send("before", [TICK]) == [None]
        process.send_signal(signal.SIGSTOP)
        try:
            assert not await answered(impatient.send("meanwhile", [TICK]))
            await until_expired(redis, 0.2)
        finally:
            process.send_signal(signal.SIGCONT)
        assert await inbox.send("after", [TICK]) == [None]
    assert notes.read_text().split() == ["ready", "before", "after"]


async def test_redis_that_hangs_or_is_killed_holds_nobody_for_long_and_is_found_again(
    tmp_path: Path,
) -> None:
    private = PrivateRedis(tmp_path)
    with private.running():
        async with sending(private, patience_s=0.3) as inbox, serving(private, Engine()):
            await until_taken(inbox, "before")
            with private.paused():
                assert not await answered(inbox.send("meanwhile", [TICK]))
            await until_taken(inbox, "between")
            private.kill()
            assert not await answered(inbox.send("meanwhile", [TICK]))
            with private.running():
                await until_taken(inbox, "after")


async def test_answer_waits_until_what_was_taken_is_safe(redis: PrivateRedis) -> None:
    settling, safe = asyncio.Event(), asyncio.Event()

    async def settle() -> None:
        settling.set()
        await safe.wait()

    sender, inbox = PushQueue(redis.url, patience_s=PATIENCE_S), PushQueue(redis.url)
    serving = asyncio.create_task(inbox.serve(Engine().take, settle))
    sent = asyncio.create_task(sender.send("desk", [TICK]))
    await asyncio.wait_for(settling.wait(), PATIENCE_S)
    with redis.client as client:
        # Nobody listens for answers yet, so one that was given would lie here.
        assert client.dbsize() == 0
    await sender.start()
    safe.set()
    assert await sent == [None]
    await cancel_and_wait(serving)
    await sender.stop()
    await inbox.stop()
