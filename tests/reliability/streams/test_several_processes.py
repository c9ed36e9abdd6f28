"""Sockets on several web processes over Redis, with the engine in one more."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from pytest_django import DjangoDbBlocker
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from accounts.key_text import prefix_of
from accounts.keys.issuing import revoke_key
from accounts.models import ApiKey
from tests.patience import PATIENCE_S, wait_until
from tests.reliability.clients.swarm import Crowd
from tests.reliability.conftest import Tell
from tests.reliability.services.flow import Flow
from tests.reliability.services.processes import Installation, Process
from tests.reliability.services.stream_services import StreamService, streaming

SYMBOL, LIMIT, RACERS, ROUNDS = "STREAMED", 10, 100, 3
PROCESSES, CROWD, TICKS_A_SECOND = 3, 60, 20
pytestmark = pytest.mark.usefixtures("rows")


@pytest.fixture(scope="module")
def service(scaled: Installation, django_db_blocker: DjangoDbBlocker) -> Iterator[StreamService]:
    with django_db_blocker.unblock(), streaming(scaled, PROCESSES, [SYMBOL]) as running:
        yield running


@pytest.fixture
def key(service: StreamService, rows: None) -> str:
    """Of an account of its own."""
    return service.make_key(streams=LIMIT)


class Client:
    """Counts what it hears."""

    def __init__(self, connection: ClientConnection, reply: dict[str, Any]) -> None:
        self.connection, self.reply = connection, reply

    @property
    def is_in(self) -> bool:
        return self.answer == "subscribed"

    @property
    def answer(self) -> str:
        return str(self.reply["error"]["code"] if "error" in self.reply else self.reply["type"])

    @property
    def place(self) -> dict[str, Any]:
        return {"epoch": self.reply["epoch"], "positions": self.reply["positions"]}

    async def hear(self, count: int) -> list[int]:
        async with asyncio.timeout(PATIENCE_S):
            return [json.loads(await self.connection.recv())["seq"] for _ in range(count)]

    async def end(self) -> tuple[str, int | None]:
        """The last words, after whatever comes before them."""
        last: dict[str, Any] = {}
        try:
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    last = json.loads(await self.connection.recv())
        except ConnectionClosed:
            return last.get("error", {}).get("code", ""), self.connection.close_code


class Clients(AsyncExitStack):
    """Of one key; closed in the end."""

    def __init__(self, key: str) -> None:
        super().__init__()
        self._key = key

    async def open(self, server: Process, **fields: Any) -> Client:
        url = f"ws://127.0.0.1:{server.port}/ws/market"
        connecting = connect(url, compression=None, ping_interval=None, open_timeout=PATIENCE_S)
        connection = await self.enter_async_context(connecting)
        message = {"action": "subscribe", "symbols": [SYMBOL], "api_key": self._key, "features": ["seq"]}
        await connection.send(json.dumps(message | fields))
        return Client(connection, json.loads(await asyncio.wait_for(connection.recv(), PATIENCE_S)))


def numbers_after(client: Client, count: int) -> list[int]:
    last = client.reply["positions"][SYMBOL]
    return list(range(last + 1, last + count + 1))


@pytest.mark.row("6", "several processes behave as one service")
def test_clients_of_all_processes_receive_the_same_messages(service: StreamService, key: str) -> None:
    async def run() -> None:
        async with Clients(key) as clients:
            opened = [await clients.open(server) for server in service.servers]
            assert opened[0].place == opened[1].place
            service.tick(SYMBOL, 100)
            for client in opened:
                assert await client.hear(100) == numbers_after(client, 100)

    asyncio.run(run())


@pytest.mark.row("6", "several processes behave as one service")
def test_a_client_resumes_on_another_process(service: StreamService, key: str) -> None:
    async def run() -> None:
        first, second, *_ = service.servers
        async with Clients(key) as clients:
            gone = await clients.open(first)
            await gone.connection.close()
            service.tick(SYMBOL, 50)
            back = await clients.open(second, resume=gone.place)
            assert back.reply["recovered"] is True
            assert await back.hear(50) == numbers_after(gone, 50)

    asyncio.run(run())


@pytest.mark.row("3", "exactly the limit is admitted")
def test_simultaneous_subscribes_open_exactly_as_many_streams_as_allowed(
    service: StreamService, tell: Tell
) -> None:
    async def race(key: str) -> Counter[str]:
        async with Clients(key) as clients:
            racing = [clients.open(service.servers[number % PROCESSES]) for number in range(RACERS)]
            return Counter(client.answer for client in await asyncio.gather(*racing))

    raced = [asyncio.run(race(service.make_key(streams=LIMIT))) for _ in range(ROUNDS)]
    tell(
        f"{ROUNDS} rounds of {RACERS} on {PROCESSES} processes; admitted:"
        f" {[answers['subscribed'] for answers in raced]}"
    )
    assert raced == [{"subscribed": LIMIT, "stream_limit_exceeded": RACERS - LIMIT}] * ROUNDS


@pytest.mark.row("3", "the control reads 10 too, or the race measures nothing")
def test_control_sequential_subscribes_reach_the_limit(service: StreamService, key: str) -> None:
    async def run() -> list[str]:
        async with Clients(key) as clients:
            return [(await clients.open(service.servers[0])).answer for _ in range(LIMIT + 5)]

    assert asyncio.run(run()) == ["subscribed"] * LIMIT + ["stream_limit_exceeded"] * 5


@pytest.mark.row("6", "several processes behave as one service")
def test_a_newcomer_takes_over_from_another_process(service: StreamService, key: str) -> None:
    async def run() -> None:
        first, second, *_ = service.servers
        async with Clients(key) as clients:
            held = [await clients.open(first) for _ in range(LIMIT)]
            assert (await clients.open(second, takeover=True)).is_in
            assert await held[0].end() == ("taken_over", 4409)
            assert not (await clients.open(second)).is_in

    asyncio.run(run())


@pytest.mark.row("15", "closed with code 4401 on every process")
def test_a_revoked_key_closes_sockets_on_all_processes(service: StreamService, key: str) -> None:
    def revoke() -> None:
        with service.installation.orm():
            revoke_key(ApiKey.objects.get(prefix=prefix_of(key)), by="test")

    async def run() -> set[tuple[str, int | None]]:
        async with Clients(key) as clients:
            opened = [await clients.open(server) for server in service.servers * 2]
            await asyncio.to_thread(revoke)
            return set(await asyncio.gather(*(client.end() for client in opened)))

    assert asyncio.run(run()) == {("invalid_api_key", 4401)}


@pytest.mark.row("4", "every stream slot is reusable; none is leaked")
def test_streams_of_a_killed_process_are_freed_and_its_clients_miss_nothing(
    service: StreamService, key: str
) -> None:
    async def run(doomed: Process) -> None:
        async with Clients(key) as clients:
            held = [await clients.open(doomed) for _ in range(LIMIT)]
            os.kill(doomed.pid, signal.SIGKILL)
            service.tick(SYMBOL, 20)
            back = await until_in(clients, service.servers[1], held[0].place)
            assert back.reply["recovered"] is True
            assert await back.hear(20) == numbers_after(held[0], 20)

    with service.installation.web_process() as doomed:
        asyncio.run(run(doomed))
    wait_until(lambda: service.open_streams(key) == 0)


async def until_in(clients: Clients, server: Process, place: dict[str, Any]) -> Client:
    async with asyncio.timeout(PATIENCE_S):
        while not (client := await clients.open(server, resume=place)).is_in:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.05)
    return client


def crowd_of(service: StreamService) -> Crowd:
    message = {"action": "subscribe", "symbols": [SYMBOL], "api_key": service.make_key()}
    return Crowd("/ws/market", message | {"features": ["seq", "lag"]}, CROWD)


@pytest.mark.row("14", "no gaps, no duplicates, every client recovers")
def test_a_crowd_that_is_disconnected_again_and_again_misses_nothing(
    service: StreamService, tell: Tell
) -> None:
    ports = [server.port for server in service.servers]
    crowd = crowd_of(service)

    async def run(flow: Flow) -> int:
        await crowd.come(crowd.clients, ports)
        for _ in range(3):
            await crowd.until_all_hear_more()
            await crowd.go(crowd.clients)
            # At the next process.
            ports.append(ports.pop(0))
            await crowd.come(crowd.clients, ports)
        await crowd.until_all_heard_the_last(flow)
        places = len(crowd.places())
        await crowd.go(crowd.clients)
        return places

    with Flow(service, TICKS_A_SECOND) as flow:
        places = asyncio.run(run(flow))
    tell(f"{flow.sent:,} ticks; gaps, duplicates or not recovered: {crowd.faults}")
    assert (crowd.faults, places) == (0, 1)


@pytest.mark.row("6", "nothing lost without notice; every client resumes on another process")
def test_a_crowd_of_a_killed_process_resumes_on_another(service: StreamService, tell: Tell) -> None:
    survivor = service.servers[0].port
    crowd = crowd_of(service)
    stranded = crowd.clients[: CROWD // 2]

    async def run(flow: Flow, doomed: Process) -> int:
        await crowd.come(stranded, [doomed.port])
        await crowd.come(crowd.clients[CROWD // 2 :], [survivor])
        await crowd.until_all_hear_more()
        os.kill(doomed.pid, signal.SIGKILL)
        await asyncio.gather(*(client.session.ended for client in stranded if client.session))
        await crowd.go(stranded)
        await crowd.come(stranded, [survivor])
        await crowd.until_all_heard_the_last(flow)
        places = len(crowd.places())
        await crowd.go(crowd.clients)
        return places

    with service.installation.web_process() as doomed, Flow(service, TICKS_A_SECOND) as flow:
        places = asyncio.run(run(flow, doomed))
    tell(f"{len(stranded)} of {CROWD} disconnected; gaps, duplicates or not recovered: {crowd.faults}")
    assert (crowd.faults, places) == (0, 1)
