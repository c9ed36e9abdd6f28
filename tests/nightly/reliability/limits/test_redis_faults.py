"""Rows 48 to 51: without Redis each process counts alone, at once, and comes back by itself."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import httpx
import pytest

from accounts.limits.redis_window import RedisWindow
from tests.factories import make_account, make_key
from tests.patience import wait_until
from tests.reliability.clients.crowd import rush
from tests.reliability.fixtures import Tell
from tests.reliability.services.private_servers import PrivateRedis
from tests.reliability.services.processes import Installation, Process

FALLBACKS = "tickwire_limit_fallbacks_total"
PROCESSES, LIMIT = 2, 60
PAUSE_S, RESETS, RESET_EVERY_S = 3.0, 4, 5.0
BACK_WITHIN_S = 5.0
pytestmark = [
    pytest.mark.usefixtures("rows"),
    pytest.mark.row("48–51", "no request takes 2 s, no 5xx"),
]


@pytest.fixture
def redis(tmp_path: Path) -> PrivateRedis:
    return PrivateRedis(tmp_path)


@pytest.fixture
def installation(embedded: Installation, redis: PrivateRedis) -> Installation:
    embedded.redis_url = redis.url
    return embedded


def make_free_key(installation: Installation) -> str:
    with installation.orm():
        return make_key(make_account())


def fallbacks(servers: list[Process]) -> float:
    return sum(server.metric(FALLBACKS) for server in servers)


def ask(server: Process, key: str, path: str = "/api/symbols") -> tuple[int, float]:
    """The status, and how many seconds it took."""
    started_at = time.monotonic()
    return server.ask(path, key).status_code, time.monotonic() - started_at


def counts_in_redis(servers: list[Process], redis: PrivateRedis, key: str) -> bool:
    """Whether a request through each server leaves its stamp in Redis."""
    with redis.client as client:
        client.flushdb()
        for server in servers:
            ask(server, key)
        stamps = [client.llen(name) for name in client.keys("tickwire:window:account:*")]
        return stamps == [len(servers)]


def test_requests_are_answered_without_redis_and_counted_in_it_again_afterwards(
    installation: Installation, redis: PrivateRedis, tell: Tell
) -> None:
    with redis.running() as _, installation.serve(PROCESSES) as servers:
        key, observer = make_free_key(installation), make_free_key(installation)
        admitted = rush(servers, [key])[200]
        assert admitted == LIMIT
        assert fallbacks(servers) == 0
        redis.kill()
        first = [ask(server, key) for server in servers]
        slowest = max(took for _, took in first)
        admitted += [status for status, _ in first].count(200) + rush(servers, [key], 200)[200]
        # All within one minute: what Redis had admitted is not given a second time.
        assert admitted == PROCESSES * LIMIT
        assert fallbacks(servers) == PROCESSES + 200
        with redis.running():
            back_after = wait_until(lambda: counts_in_redis(servers, redis, observer), BACK_WITHIN_S)
            counted = fallbacks(servers)
            assert rush(servers, [make_free_key(installation)])[200] == LIMIT
            assert fallbacks(servers) == counted
    tell(f"slowest first answer {slowest:.2f} s, admitted {admitted} on {PROCESSES} processes")
    tell(f"counting in Redis again {back_after:.2f} s after its start")
    assert slowest < 2


async def ask_for(seconds: float, servers: list[Process], key: str) -> list[tuple[int, float]]:
    """Eight clients per server, each asking again as soon as it was answered."""
    ends_at = time.monotonic() + seconds

    async def one(client: httpx.AsyncClient, server: Process) -> list[tuple[int, float]]:
        answers = []
        while (started_at := time.monotonic()) < ends_at:
            response = await client.get(f"{server.url}/api/limits", headers={"X-API-Key": key})
            answers.append((response.status_code, time.monotonic() - started_at))
            await asyncio.sleep(0.02)
        return answers

    async with httpx.AsyncClient(timeout=10) as client:
        answers = await asyncio.gather(*(one(client, server) for server in servers for _ in range(8)))
    return [answer for of_one in answers for answer in of_one]


def test_a_paused_redis_delays_no_request(
    installation: Installation, redis: PrivateRedis, tell: Tell
) -> None:
    with redis.running(), installation.serve(PROCESSES) as servers:
        key, observer = make_free_key(installation), make_free_key(installation)
        assert counts_in_redis(servers, redis, key)
        with redis.paused():
            answers = asyncio.run(ask_for(PAUSE_S, servers, key))
            counted = fallbacks(servers)
        back_after = wait_until(lambda: counts_in_redis(servers, redis, observer), BACK_WITHIN_S)
    statuses, seconds = {status for status, _ in answers}, sorted(took for _, took in answers)
    hung, middle = sum(took > 2 for took in seconds), seconds[len(seconds) // 2]
    tell(f"{len(seconds)} answers in a pause of {PAUSE_S} s, {hung} took more than 2 s")
    tell(f"median {middle * 1000:.0f} ms, slowest {seconds[-1] * 1000:.0f} ms")
    tell(f"counting in Redis again after {back_after:.2f} s")
    assert statuses == {200}
    assert counted >= len(answers)
    assert seconds[-1] < 2
    # Only the first wait for Redis; those after them are answered as if there were none.
    assert middle < RedisWindow.PATIENCE_S / 2


def test_a_key_can_be_revoked_while_redis_is_paused(
    installation: Installation, redis: PrivateRedis, tell: Tell
) -> None:
    with redis.running(), installation.serve(PROCESSES) as servers:
        key = make_free_key(installation)
        assert counts_in_redis(servers, redis, key)
        with redis.paused():
            started_at = time.monotonic()
            assert installation.manage("revoke_key", key).returncode == 0
            took = time.monotonic() - started_at
            held_after = wait_until(lambda: all(ask(server, key)[0] == 401 for server in servers), 2)
    tell(f"the command took {took:.2f} s, its decision held {held_after:.2f} s later")
    assert took < 10


def test_each_process_counts_alone_while_redis_is_full(
    installation: Installation, redis: PrivateRedis, tell: Tell
) -> None:
    with redis.running(), installation.serve(PROCESSES) as servers:
        key = make_free_key(installation)
        with redis.client as client:
            client.config_set("maxmemory-policy", "noeviction")
            client.config_set("maxmemory", 1)
            statuses = rush(servers, [key], 200)
            client.config_set("maxmemory", 0)
        assert statuses == {200: PROCESSES * LIMIT, 429: 200 - PROCESSES * LIMIT}
        tell(f"admitted {statuses[200]} on {PROCESSES} processes")
        assert fallbacks(servers) == 200


@pytest.mark.row(
    "49",
    "reset every 5 s: 1.5 times the connections there were made anew each time; slow answers not simulated",
)
def test_reset_connections_are_reopened_without_a_storm(
    installation: Installation, redis: PrivateRedis, tell: Tell
) -> None:
    with redis.running(), installation.serve(PROCESSES) as servers, redis.client as client:
        key = make_free_key(installation)
        assert counts_in_redis(servers, redis, key)
        # This client's own stays.
        held = len(client.client_list()) - 1
        made_before = client.info("stats")["total_connections_received"]
        for _ in range(RESETS):
            client.execute_command("CLIENT", "KILL", "SKIPME", "yes")
            assert {ask(server, key)[0] for server in servers} == {200}
            time.sleep(RESET_EVERY_S)
        made = client.info("stats")["total_connections_received"] - made_before
        counted = fallbacks(servers)
    a_second = made / (RESETS * RESET_EVERY_S) / PROCESSES
    tell(f"{RESETS} resets, one every {RESET_EVERY_S:.0f} s: {made} connections made anew, of {held} held")
    tell(f"{a_second:.2f} a second and process")
    tell(f"{counted:.0f} requests counted alone")
    # Nearly all once.
    assert RESETS <= made <= 1.5 * RESETS * held
