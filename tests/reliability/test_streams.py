"""Sockets on two web processes over Redis, with the engine in a third."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from typing import Any

import pytest
from pytest_django import DjangoDbBlocker
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from accounts.keys import prefix
from accounts.models import ApiKey
from accounts.services import revoke_key
from market.ingest.keys import issue_ingest_key
from tests.factories import make_account, make_instrument, make_key, make_tier
from tests.reliability.conftest import Tell
from tests.reliability.engine_processes import engines
from tests.reliability.engines import poll
from tests.reliability.processes import ROOT, Installation, Process, http, stop, tied, wait_until_healthy
from tests.services import free_port

SYMBOL, LIMIT, RACERS = "STREAMED", 10, 60
HEARD_WITHIN_S, HOLDS_WITHIN_S, REUSED_WITHIN_S = 10.0, 2.0, 5.0
pytestmark = pytest.mark.usefixtures("rows")


class Service:
    """Two web processes; ticks go in at the first."""

    def __init__(self, installation: Installation) -> None:
        self.installation = installation
        self.servers: list[Process] = []
        with installation.orm():
            make_instrument(SYMBOL)
            self._ingest_key = issue_ingest_key("desk", "", by="test")[1]
        self._ask = 1.0

    def push(self, count: int = 1) -> bool:
        """Whether all were taken."""
        first = self._ask
        self._ask += count / 10_000
        ticks = [{"symbol": SYMBOL, "bid": 1, "ask": first + number / 10_000} for number in range(count)]
        headers = {"X-Ingest-Key": self._ingest_key}
        answer = http.post(f"{self.servers[0].url}/ingest/ticks", json={"ticks": ticks}, headers=headers)
        return bool(answer.json().get("accepted") == count)


@contextmanager
def web_process(installation: Installation) -> Iterator[Process]:
    """`manage.py serve`, which has the wire; stopped or killed in the end."""
    port = free_port()
    log = installation.directory / f"streams-{port}.log"
    with log.open("wb") as out:
        command = tied("manage.py", "serve", "--port", str(port))
        process = subprocess.Popen(command, cwd=ROOT, env=installation.environment(), stdout=out, stderr=out)
    server = Process(port, process.pid, log)
    try:
        wait_until_healthy(process, server)
        yield server
    finally:
        stop(process)


@pytest.fixture(scope="module")
def service(scaled: Installation, django_db_blocker: DjangoDbBlocker) -> Iterator[Service]:
    with django_db_blocker.unblock(), ExitStack() as stack:
        made = Service(scaled)
        stack.enter_context(engines(scaled, 1))
        made.servers += [stack.enter_context(web_process(scaled)) for _ in range(2)]
        poll(made.push, HEARD_WITHIN_S)
        yield made


@pytest.fixture
def key(service: Service, rows: None) -> str:
    """Of an account of its own."""
    with service.installation.orm():
        return make_key(make_account(tier=make_tier("streams", streams=LIMIT)))


class Client:
    """Counts what it hears."""

    def __init__(self, connection: ClientConnection, reply: dict[str, Any]) -> None:
        self.connection, self.reply = connection, reply

    @property
    def is_in(self) -> bool:
        return bool(self.reply["type"] == "subscribed")

    @property
    def place(self) -> dict[str, Any]:
        return {"epoch": self.reply["epoch"], "positions": self.reply["positions"]}

    async def hear(self, count: int) -> list[int]:
        async with asyncio.timeout(HEARD_WITHIN_S):
            return [json.loads(await self.connection.recv())["seq"] for _ in range(count)]

    async def end(self) -> tuple[str, int | None]:
        """The last words, after whatever comes before them."""
        last: dict[str, Any] = {}
        try:
            async with asyncio.timeout(HEARD_WITHIN_S):
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
        connection = await self.enter_async_context(connect(url, compression=None))
        message = {"action": "subscribe", "symbols": [SYMBOL], "api_key": self._key, "features": ["seq"]}
        await connection.send(json.dumps(message | fields))
        return Client(connection, json.loads(await asyncio.wait_for(connection.recv(), HEARD_WITHIN_S)))


def numbers_after(client: Client, count: int) -> list[int]:
    last = client.reply["positions"][SYMBOL]
    return list(range(last + 1, last + count + 1))


def test_clients_of_all_processes_hear_the_same(service: Service, key: str) -> None:
    async def run() -> None:
        async with Clients(key) as clients:
            opened = [await clients.open(server) for server in service.servers]
            assert opened[0].place == opened[1].place
            assert service.push(100)
            for client in opened:
                assert await client.hear(100) == numbers_after(client, 100)

    asyncio.run(run())


def test_client_resumes_on_another_process(service: Service, key: str) -> None:
    async def run() -> None:
        first, second = service.servers
        async with Clients(key) as clients:
            gone = await clients.open(first)
            await gone.connection.close()
            assert service.push(50)
            back = await clients.open(second, resume=gone.place)
            assert back.reply["recovered"] is True
            assert await back.hear(50) == numbers_after(gone, 50)

    asyncio.run(run())


def test_racers_for_streams_get_exactly_the_limit(service: Service, key: str, tell: Tell) -> None:
    async def run() -> list[Client]:
        async with Clients(key) as clients:
            racing = [clients.open(service.servers[number % 2]) for number in range(RACERS)]
            return await asyncio.gather(*racing)

    raced = asyncio.run(run())
    admitted = sum(client.is_in for client in raced)
    tell(f"{admitted} of {RACERS} admitted at a limit of {LIMIT}")
    refused = {client.reply["error"]["code"] for client in raced if not client.is_in}
    assert (admitted, refused) == (LIMIT, {"stream_limit_exceeded"})


def test_newcomer_takes_over_from_another_process(service: Service, key: str) -> None:
    async def run() -> None:
        first, second = service.servers
        async with Clients(key) as clients:
            held = [await clients.open(first) for _ in range(LIMIT)]
            assert (await clients.open(second, takeover=True)).is_in
            assert await held[0].end() == ("taken_over", 4409)
            assert not (await clients.open(second)).is_in

    asyncio.run(run())


def test_revoked_key_ends_sockets_of_all_processes_within_two_seconds(
    service: Service, key: str, tell: Tell
) -> None:
    def revoke() -> None:
        with service.installation.orm():
            revoke_key(ApiKey.objects.get(prefix=prefix(key)), by="test")

    async def run() -> float:
        async with Clients(key) as clients:
            opened = [await clients.open(server) for server in service.servers * 3]
            await asyncio.to_thread(revoke)
            revoked_at = time.monotonic()
            ends = await asyncio.gather(*(client.end() for client in opened))
            assert set(ends) == {("invalid_api_key", 4401)}
            return time.monotonic() - revoked_at

    took_s = asyncio.run(run())
    tell(f"{took_s * 1000:.0f} ms from commit to the last of 6")
    assert took_s < HOLDS_WITHIN_S


def test_streams_of_a_killed_process_are_free_soon_and_its_clients_miss_nothing(
    service: Service, key: str, tell: Tell
) -> None:
    async def run(doomed: Process) -> float:
        async with Clients(key) as clients:
            held = [await clients.open(doomed) for _ in range(LIMIT)]
            os.kill(doomed.pid, signal.SIGKILL)
            killed_at = time.monotonic()
            assert service.push(20)
            back = await until_in(clients, service.servers[1], held[0].place)
            took_s = time.monotonic() - killed_at
            assert back.reply["recovered"] is True
            assert await back.hear(20) == numbers_after(held[0], 20)
            return took_s

    with web_process(service.installation) as doomed:
        took_s = asyncio.run(run(doomed))
    tell(f"{took_s:.1f} s from kill -9 to the next stream of the account")
    assert took_s <= REUSED_WITHIN_S


async def until_in(clients: Clients, server: Process, place: dict[str, Any]) -> Client:
    deadline = time.monotonic() + HEARD_WITHIN_S
    while not (client := await clients.open(server, resume=place)).is_in:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)
    return client
