"""Web processes hear ticks from a replica of the bus, and know when it stands still, lags or starts anew."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from instruments.catalogue import catalogue
from market.engine.bus.redis_bus import RedisBus
from market.engine.bus.replica_watch import ReplicaWatch
from market.prices.records import AnyRecord
from market.runtime import EngineLiveness
from tests.delays import noted_delays
from tests.factories import make_instrument
from tests.market.bus.test_bus import Following, opened, publish, write_position
from tests.patience import PATIENCE_S, until, wait_until
from tests.programs.redis_group import FORGETFUL, QUICK, RedisNode

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("transactional_db")]
LATE_S, TOLD_WITHIN_S = 1.0, 3.0


class Line:
    """Between the bus and its replica; what passes may be made to wait."""

    def __init__(self) -> None:
        self.delay_s = 0.0
        self.port = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, to: int) -> None:
        self._to = to
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream = await asyncio.open_connection("127.0.0.1", self._to)
        for source, to in ((reader, upstream[1]), (upstream[0], writer)):
            self._tasks.add(asyncio.create_task(self._pass(source, to)))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        sending = asyncio.create_task(self._send(waiting, writer))
        self._tasks.add(sending)
        try:
            with suppress(OSError):
                while data := await reader.read(65_536):
                    waiting.put_nowait((time.monotonic() + self.delay_s, data))
        finally:
            sending.cancel()
            writer.transport.abort()

    async def _send(self, waiting: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter) -> None:
        while True:
            at_s, data = await waiting.get()
            await asyncio.sleep(at_s - time.monotonic())
            writer.write(data)


class Machine(Following):
    """A web process with its replica, and what its clients would be told."""

    def __init__(self, bus: RedisBus, url: str, replica: RedisNode, line: Line) -> None:
        super().__init__(url)
        self.bus, self.replica, self.line = bus, replica, line
        self.liveness = EngineLiveness()
        self.told: list[bool] = []
        self.liveness.watchers.append(self.told.append)
        self.sent = 0

    def hear(self, records: list[AnyRecord]) -> None:
        super().hear(records)
        self.liveness.heard(time.monotonic())

    async def publish(self, count: int) -> None:
        await publish(self.bus, self.sent + 1, self.sent + count)
        self.sent += count

    async def flow(self, seconds: float) -> None:
        ends_s = time.monotonic() + seconds
        while time.monotonic() < ends_s:
            await self.publish(1)
            await asyncio.sleep(0.05)

    async def flow_ever_later(self, ending: asyncio.Event) -> None:
        """At half their speed, so there is always a tick, and each is later than the one before."""
        while not ending.is_set():
            await self.publish(1)
            self.line.delay_s += 0.025
            await asyncio.sleep(0.05)

    def has_all(self) -> bool:
        return self.heard == list(range(1, self.sent + 1))


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[RedisNode, RedisNode]]:
    nodes = [RedisNode(tmp_path / name, (*FORGETFUL, *QUICK)) for name in ("bus", "replica")]
    try:
        for node in nodes:
            node.start()
        yield nodes[0], nodes[1]
    finally:
        for node in nodes:
            node.kill()


def watch(pair: tuple[RedisNode, RedisNode], act: Callable[[Machine], Awaitable[None]]) -> Machine:
    make_instrument("EURUSD")
    catalogue.load_now()
    master, replica = pair
    urls = [f"redis://127.0.0.1:{node.port}/0" for node in pair]

    async def run() -> Machine:
        line = Line()
        await line.start(master.port)
        await asyncio.to_thread(follow, replica, line.port)
        bus = await opened(urls[0])
        await asyncio.to_thread(write_position, bus.journal_position)
        machine = Machine(bus, urls[1], replica, line)
        reader = machine.reader
        replica_watch = ReplicaWatch(urls[0], lambda: reader.journal_position, machine.liveness.fall_behind)
        machine.liveness.start()
        await reader.start()
        await replica_watch.start()
        try:
            await act(machine)
        finally:
            await replica_watch.stop()
            machine.liveness.stop()
            await reader.stop()
            await bus.close()
            await line.stop()
        return machine

    return asyncio.run(run())


def follow(replica: RedisNode, port: int) -> None:
    with replica.client as client:
        client.replicaof("127.0.0.1", port)
    wait_until(lambda: replica.is_in_step)


def test_ticks_come_from_the_replica(pair: tuple[RedisNode, RedisNode]) -> None:
    async def act(machine: Machine) -> None:
        await machine.publish(50)
        await until(machine.has_all)

    assert watch(pair, act).told == []


async def seconds_until_told(machine: Machine) -> float:
    """Without those that this machine had no time for: whoever tells of it does so in this loop."""
    with noted_delays() as delays:
        began_s = time.monotonic()
        await until(lambda: machine.told == [False])
        return time.monotonic() - began_s - delays.total_s


def test_late_replica_is_told_though_ticks_come(pair: tuple[RedisNode, RedisNode]) -> None:
    async def act(machine: Machine) -> None:
        ending = asyncio.Event()
        flowing = asyncio.create_task(machine.flow_ever_later(ending))
        await until(lambda: machine.line.delay_s > LATE_S)
        assert await seconds_until_told(machine) < TOLD_WITHIN_S
        # They are passed on, and do not count as heard.
        before = len(machine.heard)
        await until(lambda: len(machine.heard) > before)
        assert machine.told == [False]
        ending.set()
        await flowing
        machine.line.delay_s = 0.0
        await until(machine.has_all)
        async with asyncio.timeout(PATIENCE_S):
            while not machine.told[-1]:
                await machine.flow(0.2)

    assert watch(pair, act).missed == []


@pytest.mark.parametrize("follows", [True, False])
def test_only_who_does_not_follow_to_a_new_numbering_is_late(
    pair: tuple[RedisNode, RedisNode], follows: bool
) -> None:
    url, told = f"redis://127.0.0.1:{pair[0].port}/0", list[bool]()

    async def run() -> None:
        first = await opened(url)
        read = first
        replica_watch = ReplicaWatch(url, lambda: read.journal_position, told.append)
        await replica_watch.look()
        second = await opened(url)
        assert second.journal_position.epoch != first.journal_position.epoch
        read = second if follows else first
        await replica_watch.look()
        await asyncio.sleep(LATE_S)
        await replica_watch.look()
        await replica_watch.stop()
        await first.close()
        await second.close()

    asyncio.run(run())

    assert told == ([] if follows else [True])


def test_replica_that_stands_still_is_told_and_read_on(pair: tuple[RedisNode, RedisNode]) -> None:
    async def act(machine: Machine) -> None:
        await machine.publish(10)
        await until(machine.has_all)
        with machine.replica.stopped():
            flowing = asyncio.create_task(machine.flow(4.0))
            assert await seconds_until_told(machine) < TOLD_WITHIN_S
            await flowing
        await until(machine.has_all)

    assert watch(pair, act).missed == []


def test_replica_that_starts_anew_is_read_on(pair: tuple[RedisNode, RedisNode]) -> None:
    async def act(machine: Machine) -> None:
        await machine.publish(10)
        await until(machine.has_all)
        machine.replica.kill()
        await machine.publish(10)
        await asyncio.to_thread(machine.replica.start)
        await asyncio.to_thread(follow, machine.replica, machine.line.port)
        await machine.publish(10)
        await until(machine.has_all)

    assert watch(pair, act).missed == []
