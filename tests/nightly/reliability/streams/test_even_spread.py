"""Workers that share a port come to have as many connections, however they arrive and whatever ends one."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator

import pytest

from tests.factories import make_account, make_key, make_tier
from tests.patience import PATIENCE_S, wait_until
from tests.reliability.clients.swarm import Listener, listen, listen_many
from tests.reliability.conftest import Tell
from tests.reliability.services.processes import Installation
from tests.reliability.services.supervised import Supervised, clients_of, stopped, supervised

SOCKETS, FEW = 1_000, 300
MOST_UNEVEN = 1.2
PATH = "/ws/signals"
pytestmark = [
    pytest.mark.usefixtures("rows"),
    pytest.mark.row(
        "even spread", f"the worker with most connections has at most {MOST_UNEVEN} times the fewest"
    ),
]


@pytest.fixture(scope="module")
def four(scaled: Installation) -> Iterator[Supervised]:
    with supervised(scaled, workers=4) as host:
        yield host


@pytest.fixture
def message(scaled: Installation) -> dict[str, str]:
    with scaled.orm():
        tier = make_tier("spread", streams=10_000, requests_per_minute=1_000_000)
        return {"action": "subscribe", "api_key": make_key(make_account(tier=tier))}


def spread(host: Supervised) -> list[int]:
    return sorted(len(clients_of(pid, host.server.port)) for pid in host.serving)


def is_even(counts: list[int]) -> bool:
    return counts[-1] <= MOST_UNEVEN * counts[0]


async def leave(listeners: list[Listener]) -> None:
    for listener in listeners:
        await listener.leave()


async def ask_and_keep(port: int) -> asyncio.StreamWriter:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    async with asyncio.timeout(PATIENCE_S):
        assert b" 200 " in await reader.readline()
    return writer


async def test_a_burst_of_connections_spreads_evenly(
    four: Supervised, message: dict[str, str], tell: Tell
) -> None:
    listeners = await listen_many([four.server.port], PATH, message, SOCKETS)
    counts = spread(four)
    await leave(listeners)
    tell(f"{SOCKETS} simultaneous connections over 4 workers: {counts}")
    assert sum(counts) >= SOCKETS
    assert is_even(counts)


async def test_sequential_connections_spread_evenly(
    four: Supervised, message: dict[str, str], tell: Tell
) -> None:
    listeners = [await listen(four.server.port, PATH, message) for _ in range(SOCKETS)]
    counts = spread(four)
    await leave(listeners)
    tell(f"{SOCKETS} sequential connections over 4 workers: {counts}")
    assert is_even(counts)


async def test_idle_http_connections_count_as_well(
    four: Supervised, message: dict[str, str], tell: Tell
) -> None:
    kept = [await ask_and_keep(four.server.port) for _ in range(FEW)]
    listeners = await listen_many([four.server.port], PATH, message, FEW)
    counts = spread(four)
    await leave(listeners)
    for writer in kept:
        writer.close()
    tell(f"{FEW} kept by HTTP clients and {FEW} sockets over 4 workers: {counts}")
    assert sum(counts) >= 2 * FEW
    assert is_even(counts)


async def test_a_frozen_worker_delays_no_connection(
    four: Supervised, message: dict[str, str], tell: Tell
) -> None:
    frozen, *others = four.serving
    with stopped(frozen):
        began_at = time.monotonic()
        listeners = await listen_many([four.server.port], PATH, message, FEW)
        took_s = time.monotonic() - began_at
        counts = sorted(len(clients_of(pid, four.server.port)) for pid in others)
    await leave(listeners)
    tell(f"{FEW} while one of 4 workers was frozen: {counts} in {took_s:.1f} s")
    assert sum(counts) >= FEW
    assert is_even(counts)


async def test_a_restarted_worker_is_filled_first(
    four: Supervised, message: dict[str, str], tell: Tell
) -> None:
    earlier = await listen_many([four.server.port], PATH, message, FEW)
    os.kill(four.serving[0], signal.SIGKILL)
    await asyncio.to_thread(wait_until, lambda: len(four.serving) == 3)
    await asyncio.to_thread(four.wait_for, 4)
    later = await listen_many([four.server.port], PATH, message, FEW)
    counts = spread(four)
    await leave([*earlier, *later])
    tell(f"after one of 4 workers was killed and came back: {counts}")
    assert is_even(counts)


async def test_two_workers_share_connections_evenly(
    scaled: Installation, message: dict[str, str], tell: Tell
) -> None:
    with supervised(scaled, workers=2) as host:
        listeners = await listen_many([host.server.port], PATH, message, SOCKETS)
        counts = spread(host)
        await leave(listeners)
    tell(f"{SOCKETS} simultaneous connections over 2 workers: {counts}")
    assert is_even(counts)
