"""Two web processes are replaced one after the other under 60 clients and sources, some of them with as many
streams as they may have: nobody fails, nobody is refused, and no number is missing."""

from __future__ import annotations

import asyncio
import signal
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from market.push.keys import issue_ingest_key
from tests.factories import make_account, make_instrument, make_key, make_tier
from tests.patience import until, wait_until
from tests.programs.services import free_port
from tests.reliability.clients.traffic import (
    SERVICE_WAITS_S,
    Asking,
    PushingClient,
    PushingSocket,
    ResumingClient,
    Traffic,
)
from tests.reliability.conftest import Tell
from tests.reliability.services.cable import Cable
from tests.reliability.services.engine_processes import engines
from tests.reliability.services.haproxy import haproxy, is_up
from tests.reliability.services.processes import Installation
from tests.reliability.services.supervised import Supervised, command_of, supervised

ACCOUNTS, STREAMS_EACH, POLLERS = 8, 5, 16
DRAIN_S, LATE_S = 2.0, 0.15

# Of all that is asked and pushed. A restart that held up more would be no matter of a slow machine.
MOST_HELD_UP = 0.05
PATHS = ("/api/symbols", "/api/limits", "/api/signals", "/api/session")
pytestmark = pytest.mark.row(
    "36", "with 60 clients: no failed request or push, no gap, no stream rejected with 4429"
)


def make_traffic(installation: Installation, name: str) -> Traffic:
    """Each account has as many streams as its tier allows."""
    with installation.orm():
        symbols = [make_instrument(f"{name}{number}").symbol for number in range(4)]
        tier = make_tier(f"{name}-full", streams=STREAMS_EACH, requests_per_minute=1_000_000)
        keys = [make_key(make_account(tier=tier)) for _ in range(ACCOUNTS)]
        ingest_key = issue_ingest_key(name, by="test")[1]
    return Traffic(
        [ResumingClient(key, symbols) for key in keys for _ in range(STREAMS_EACH)],
        [Asking(PATHS[number % len(PATHS)], keys[number % len(keys)]) for number in range(POLLERS)],
        [
            *(PushingClient(ingest_key, symbol) for symbol in symbols[:2]),
            *(PushingSocket(ingest_key, symbol) for symbol in symbols[2:]),
        ],
    )


def check(traffic: Traffic, tell: Tell) -> None:
    answers, pushes, ends = traffic.answers(), traffic.pushes(), traffic.ends()
    sessions = sum(client.sessions for client in traffic.streams)
    tell(f"{answers.total()} requests: {dict(answers)}; {pushes.total()} pushes: {dict(pushes)}")
    tell(f"asked to reconnect after {SERVICE_WAITS_S:g} s of silence: {traffic.held_up()}")
    tell(f"{sessions} sessions, closed with {dict(ends)}; refused: {dict(traffic.refusals())}")
    tell(f"gaps: {traffic.holes()}, ticks accepted but not delivered: {traffic.lost()}")
    assert set(answers) == {"200"}
    assert set(pushes) == {"accepted"}
    assert traffic.held_up() <= MOST_HELD_UP * (answers.total() + pushes.total())
    assert not traffic.refusals()
    assert (traffic.holes(), traffic.lost()) == (0, 0)
    assert (set(ends), traffic.unannounced()) == ({1012}, 0)
    assert all(client.sessions > 1 for client in traffic.streams)
    assert all(source.left_over == 0 for source in traffic.sources if isinstance(source, PushingSocket))


async def test_two_services_behind_a_proxy_are_restarted_under_traffic(
    scaled: Installation, tmp_path: Path, tell: Tell
) -> None:
    traffic = await asyncio.to_thread(make_traffic, scaled, "BEHIND")
    ports = [free_port(), free_port()]
    with engines(scaled, 1), ExitStack() as running:
        stacks = [running.enter_context(ExitStack()) for _ in ports]
        near = str(urlsplit(scaled.redis_url).port)
        cable = Cable(int(near), LATE_S)
        running.callback(cable.close)
        # Clients are back on the other process before this one could release one slot after the other.
        far = scaled.redis_url.replace(near, str(cable.port))
        await asyncio.to_thread(start, scaled, stacks[0], ports[0], far)
        await asyncio.to_thread(start, scaled, stacks[1], ports[1], scaled.redis_url)
        front = running.enter_context(haproxy(tmp_path, ports))
        async with traffic.at(front):
            for stack, port in zip(stacks, ports, strict=True):
                await until(lambda: all(source.taken > 20 for source in traffic.sources))
                await asyncio.to_thread(restart, scaled, stack, front, port)
    check(traffic, tell)


def start(installation: Installation, stack: ExitStack, port: int, redis_url: str) -> None:
    stack.enter_context(installation.web_process(port, DRAIN_S=str(DRAIN_S), REDIS_URL=redis_url))


def restart(installation: Installation, stack: ExitStack, front: int, port: int) -> None:
    stack.close()
    start(installation, stack, port, installation.redis_url)
    wait_until(lambda: is_up(front, port))


async def test_both_workers_of_a_service_are_replaced_under_traffic(scaled: Installation, tell: Tell) -> None:
    traffic = await asyncio.to_thread(make_traffic, scaled, "BESIDE")
    with engines(scaled, 1), supervised(scaled, DRAIN_S=str(DRAIN_S)) as host:
        async with traffic.at(host.server.port):
            await until(lambda: all(source.taken > 20 for source in traffic.sources))
            await asyncio.to_thread(hang_up, host)
    check(traffic, tell)


def hang_up(host: Supervised) -> None:
    before = host.workers
    host.send(signal.SIGHUP)
    wait_until(lambda: not any(command_of(pid) for pid in before))
    host.wait_for(2)
