"""Workers that share a port come to have as many connections, however they arrive and whatever ends one."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator

import pytest

from tests.patience import PATIENCE_S, wait_until
from tests.reliability.clients.swarm import Listener, listen, listen_many
from tests.reliability.conftest import Tell
from tests.reliability.services.frozen import frozen
from tests.reliability.services.processes import Installation
from tests.reliability.services.supervised import Supervised, clients_of, supervised

SOCKETS, FEW = 1_000, 300
MOST_UNEVEN = 1.2
PATH = "/ws/signals"
Message = dict[str, str]
pytestmark = pytest.mark.row(
    "even spread", f"the worker with most connections has at most {MOST_UNEVEN} times the fewest"
)


@pytest.fixture(scope="module")
def four(scaled: Installation) -> Iterator[Supervised]:
    with supervised(scaled, workers=4) as host:
        yield host


@pytest.fixture
def message(scaled: Installation) -> Message:
    key = scaled.make_key("spread", streams=10_000, requests_per_minute=1_000_000)
    return {"action": "subscribe", "api_key": key}


async def check(
    host: Supervised, workers: list[int], listeners: list[Listener], tell: Tell, least: int = 0
) -> None:
    counts = sorted(len(clients_of(pid, host.server.port)) for pid in workers)
    for listener in listeners:
        await listener.leave()
    tell(f"over {len(workers)} workers: {counts}")
    assert sum(counts) >= (least or len(listeners))
    assert counts[-1] <= MOST_UNEVEN * counts[0]


async def ask_and_keep(port: int) -> asyncio.StreamWriter:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    async with asyncio.timeout(PATIENCE_S):
        assert b" 200 " in await reader.readline()
    return writer


@pytest.mark.parametrize("at_once", [True, False], ids=["simultaneous", "sequential"])
async def test_connections_spread_evenly(
    four: Supervised, message: Message, tell: Tell, at_once: bool
) -> None:
    port = four.server.port
    if at_once:
        listeners = await listen_many([port], PATH, message, SOCKETS)
    else:
        listeners = [await listen(port, PATH, message) for _ in range(SOCKETS)]
    await check(four, four.serving, listeners, tell)


async def test_idle_http_connections_count_as_well(four: Supervised, message: Message, tell: Tell) -> None:
    kept = [await ask_and_keep(four.server.port) for _ in range(FEW)]
    listeners = await listen_many([four.server.port], PATH, message, FEW)
    await check(four, four.serving, listeners, tell)
    for writer in kept:
        writer.close()


async def test_a_frozen_worker_delays_no_connection(four: Supervised, message: Message, tell: Tell) -> None:
    stopped, *others = four.serving
    with frozen([stopped]):
        listeners = await listen_many([four.server.port], PATH, message, FEW)
    await check(four, others, listeners, tell)


async def test_a_restarted_worker_is_filled_first(four: Supervised, message: Message, tell: Tell) -> None:
    earlier = await listen_many([four.server.port], PATH, message, FEW)
    os.kill(four.serving[0], signal.SIGKILL)
    await asyncio.to_thread(wait_until, lambda: len(four.serving) == 3)
    await asyncio.to_thread(four.wait_for, 4)
    later = await listen_many([four.server.port], PATH, message, FEW)
    await check(four, four.serving, [*earlier, *later], tell, least=FEW)
