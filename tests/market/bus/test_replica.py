"""Web processes hear ticks from a replica of the bus, and know when it stands still, lags or starts anew."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from instruments.catalogue import catalogue
from market.engine.bus import bus_reader
from market.engine.bus.bus_reader import LATE_S, REPLICA_LOOK_S, ReplicaWatch
from market.engine.bus.redis_bus import RedisBus
from market.prices.records import AnyRecord
from market.runtime import EngineLiveness
from tests.factories import make_instrument
from tests.patience import PATIENCE_S, until, wait_until
from tests.programs.redis_group import FORGETFUL, QUICK, RedisNode

from .buses import Following, number_of_entries, opened, publish, write_position

pytestmark = [
    pytest.mark.served,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("transactional_db"),
]
TOLD_WITHIN_S, ANSWER_WITHIN_S = 3.0, bus_reader.PATIENCE_S


class Line:
    """Between the bus and its replica; what passes to the replica may be held back."""

    def __init__(self) -> None:
        self.held: asyncio.Queue[bytes] | None = None
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

    def hold(self) -> None:
        self.held = asyncio.Queue()

    def let_pass(self, pieces: int) -> None:
        assert self.held is not None
        for _ in range(pieces):
            self._to_replica.write(self.held.get_nowait())

    def let_all_pass(self) -> None:
        assert self.held is not None
        self.let_pass(self.held.qsize())
        self.held = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._to_replica = writer
        upstream = await asyncio.open_connection("127.0.0.1", self._to)
        for source, to in ((reader, upstream[1]), (upstream[0], writer)):
            self._tasks.add(asyncio.create_task(self._pass(source, to)))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError):
                while data := await reader.read(65_536):
                    if self.held is not None and writer is self._to_replica:
                        self.held.put_nowait(data)
                    else:
                        writer.write(data)
        finally:
            writer.transport.abort()


class Machine(Following):
    """A web process with its replica, and what its clients would be told. Its clock is the test's."""

    def __init__(self, bus: RedisBus, urls: list[str], replica: RedisNode, line: Line) -> None:
        super().__init__(urls[1])
        self.bus, self.replica, self.line = bus, replica, line
        self.liveness = EngineLiveness()
        self.told: list[bool] = []
        self.liveness.watchers.append(self.told.append)
        self.sent, self.now_s = 0, 0.0
        reader = self.reader
        self.watch = ReplicaWatch(
            urls[0], lambda: reader.journal_position, self.liveness.fall_behind, lambda: self.now_s
        )

    def hear(self, records: list[AnyRecord]) -> None:
        super().hear(records)
        self.liveness.heard(self.now_s)

    async def publish(self, count: int) -> None:
        await publish(self.bus, self.sent + 1, self.sent + count)
        self.sent += count

    async def look_after(self, seconds: float) -> None:
        self.now_s += seconds
        await self.watch.look()

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


@pytest.fixture(autouse=True)
def _busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer may come late."""
    monkeypatch.setattr(bus_reader, "PATIENCE_S", PATIENCE_S)


def url_of(node: RedisNode) -> str:
    return f"redis://127.0.0.1:{node.port}/0"


def with_machine(pair: tuple[RedisNode, RedisNode], act: Callable[[Machine], Awaitable[None]]) -> Machine:
    make_instrument("EURUSD")
    catalogue.load_now()
    master, replica = pair

    async def run() -> Machine:
        line = Line()
        await line.start(master.port)
        await asyncio.to_thread(follow, replica, line.port)
        bus = await opened(url_of(master))
        await asyncio.to_thread(write_position, bus.journal_position)
        machine = Machine(bus, [url_of(node) for node in pair], replica, line)
        await machine.reader.start()
        try:
            await act(machine)
        finally:
            await machine.watch.stop()
            await machine.reader.stop()
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
        for _ in range(3):
            await machine.publish(50)
            await machine.look_after(REPLICA_LOOK_S)
            await until(machine.has_all)
            await machine.look_after(LATE_S + REPLICA_LOOK_S)

    assert with_machine(pair, act).told == []


def test_late_replica_is_told_though_ticks_come(pair: tuple[RedisNode, RedisNode]) -> None:
    async def act(machine: Machine) -> None:
        line = machine.line
        line.hold()
        await machine.publish(1)
        await until(lambda: line.held and line.held.qsize())
        await machine.publish(1)
        with pair[0].client as bus:
            await until(lambda: number_of_entries(bus) == 2)
        await machine.look_after(0)
        await machine.look_after(LATE_S + REPLICA_LOOK_S)
        assert machine.told == [False]
        # What comes is passed on, and does not count as heard.
        while not machine.heard:
            line.let_pass(1)
            await until(lambda: machine.heard or (line.held and line.held.qsize()))
        assert machine.told == [False]
        line.let_all_pass()
        await until(machine.has_all)
        await machine.look_after(REPLICA_LOOK_S)
        await machine.publish(1)
        await until(lambda: machine.told == [False, True])

    assert with_machine(pair, act).missed == []


@pytest.mark.parametrize("follows", [True, False])
def test_only_who_does_not_follow_to_a_new_numbering_is_late_and_says_so_in_time(
    pair: tuple[RedisNode, RedisNode], follows: bool
) -> None:
    url, told, now_s = url_of(pair[0]), list[bool](), 0.0

    async def run() -> None:
        nonlocal now_s
        first = await opened(url)
        read = first
        watch = ReplicaWatch(url, lambda: read.journal_position, told.append, lambda: now_s)
        await watch.look()
        second = await opened(url)
        assert second.journal_position.epoch != first.journal_position.epoch
        read = second if follows else first
        # In the worst case it changes just after a look, and the last look waits for its answer.
        while not told and now_s + ANSWER_WITHIN_S < TOLD_WITHIN_S:
            now_s += REPLICA_LOOK_S
            await watch.look()
        await watch.stop()
        await first.close()
        await second.close()

    asyncio.run(run())

    assert told == ([] if follows else [True])
    assert now_s + ANSWER_WITHIN_S < TOLD_WITHIN_S + REPLICA_LOOK_S * follows


def test_replica_that_stands_still_is_told_and_read_on(pair: tuple[RedisNode, RedisNode]) -> None:
    async def act(machine: Machine) -> None:
        await machine.publish(10)
        await until(machine.has_all)
        with machine.replica.stopped():
            await machine.publish(10)
            await machine.watch.start()
            while not machine.told:
                machine.now_s += REPLICA_LOOK_S
                await asyncio.sleep(REPLICA_LOOK_S / 8)
        await until(machine.has_all)
        assert machine.told[0] is False

    assert with_machine(pair, act).missed == []


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

    assert with_machine(pair, act).missed == []
