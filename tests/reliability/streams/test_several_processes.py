"""Sockets on several web processes over Redis, with the engine in one more."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from accounts.key_text import prefix_of
from accounts.keys.issuing import revoke_key
from accounts.models import ApiKey
from tests.contract.streams.client import LIVENESS
from tests.patience import PATIENCE_S, wait_until
from tests.reliability.conftest import Tell
from tests.reliability.services.processes import Installation, Process
from tests.reliability.services.stream_services import StreamService, streaming

SYMBOL, LIMIT, RACERS, ROUNDS, PROCESSES = "STREAMED", 10, 100, 3, 3


@pytest.fixture(scope="module")
def service(scaled: Installation) -> Iterator[StreamService]:
    with streaming(scaled, PROCESSES, [SYMBOL]) as running:
        yield running


class Client:
    def __init__(self, connection: ClientConnection, reply: dict[str, Any]) -> None:
        self._connection, self.reply = connection, reply

    @property
    def answer(self) -> str:
        return str(self.reply["error"]["code"] if "error" in self.reply else self.reply["type"])

    @property
    def place(self) -> dict[str, Any]:
        return {"epoch": self.reply["epoch"], "positions": self.reply["positions"]}

    async def hear(self, count: int) -> list[int]:
        """The numbers of so many frames. A process that stood still says so between them."""
        numbers: list[int] = []
        async with asyncio.timeout(PATIENCE_S):
            while len(numbers) < count:
                frame = json.loads(await self._connection.recv())
                assert "seq" in frame or frame.get("code") in LIVENESS, frame
                numbers += [frame["seq"]] if "seq" in frame else []
        return numbers

    async def end(self) -> tuple[str, int | None]:
        """The last words, after whatever comes before them."""
        last: dict[str, Any] = {}
        try:
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    last = json.loads(await self._connection.recv())
        except ConnectionClosed:
            return last.get("error", {}).get("code", ""), self._connection.close_code


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
async def test_clients_of_all_processes_receive_the_same_messages(service: StreamService) -> None:
    async with Clients(await asyncio.to_thread(service.make_key)) as clients:
        opened = [await clients.open(server) for server in service.servers]
        assert opened[0].place == opened[1].place
        await asyncio.to_thread(service.tick, SYMBOL, 100)
        for client in opened:
            assert await client.hear(100) == numbers_after(client, 100)


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


@pytest.mark.row("15", "closed with code 4401 on every process")
def test_a_revoked_key_closes_sockets_on_all_processes(service: StreamService) -> None:
    revoke_everywhere(service)


def revoke_everywhere(service: StreamService) -> float:
    """How long after the commit the last of its sockets closed."""
    key = service.make_key(streams=LIMIT)

    def revoke() -> None:
        with service.installation.orm():
            revoke_key(ApiKey.objects.get(prefix=prefix_of(key)), by="test")

    async def run() -> float:
        async with Clients(key) as clients:
            opened = [await clients.open(server) for server in service.servers * 2]
            await asyncio.to_thread(revoke)
            revoked_at = time.monotonic()
            ends = set(await asyncio.gather(*(client.end() for client in opened)))
            assert ends == {("invalid_api_key", 4401)}
            return time.monotonic() - revoked_at

    return asyncio.run(run())


@pytest.mark.row("4", "every stream slot is reusable; none is leaked")
def test_streams_of_a_killed_process_are_freed_and_its_clients_miss_nothing(service: StreamService) -> None:
    free_after_a_kill(service)


def free_after_a_kill(service: StreamService) -> float:
    """How long after it a client at its limit was let in again."""
    key = service.make_key(streams=LIMIT)

    async def run(doomed: Process) -> float:
        async with Clients(key) as clients:
            held = [await clients.open(doomed) for _ in range(LIMIT)]
            os.kill(doomed.pid, signal.SIGKILL)
            killed_at = time.monotonic()
            await asyncio.to_thread(service.tick, SYMBOL, 20)
            back = await until_in(clients, service.servers[1], held[0].place)
            took_s = time.monotonic() - killed_at
            assert back.reply["recovered"] is True
            assert await back.hear(20) == numbers_after(held[0], 20)
            return took_s

    with service.installation.web_process() as doomed:
        took_s = asyncio.run(run(doomed))
    wait_until(lambda: service.open_streams(key) == 0)
    return took_s


async def until_in(clients: Clients, server: Process, place: dict[str, Any]) -> Client:
    async with asyncio.timeout(PATIENCE_S):
        while (client := await clients.open(server, resume=place)).answer != "subscribed":  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.05)
    return client
