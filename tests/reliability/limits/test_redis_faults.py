"""Rows 48 to 51: without Redis each process counts alone, and with it again in the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.factories import make_account, make_key
from tests.patience import wait_until
from tests.reliability.clients.crowd import rush
from tests.reliability.fixtures import Tell
from tests.reliability.services.private_servers import PrivateRedis
from tests.reliability.services.processes import Installation, Process, manage

FALLBACKS = "tickwire_limit_fallbacks_total"
FULL = 'tickwire_degraded{what="redis",why="full"}'
PROCESSES, LIMIT = 2, 60


class Counted:
    """Two processes that count in one Redis, which is there at the end of each test as at its beginning."""

    def __init__(self, installation: Installation, redis: PrivateRedis, servers: list[Process]) -> None:
        self.installation, self.redis, self.servers = installation, redis, servers

    def make_key(self) -> str:
        with self.installation.orm():
            return make_key(make_account())

    def status(self, server: Process, key: str) -> int:
        return server.ask("/api/symbols", key).status_code

    @property
    def alone(self) -> float:
        """How many requests were counted by a process alone."""
        return sum(server.metric(FALLBACKS) for server in self.servers)

    def wait_for_redis(self) -> float:
        """How long it took until a request through each server left its stamp in Redis."""
        key = self.make_key()

        def is_counted() -> bool:
            with self.redis.client as client:
                client.flushdb()
                for server in self.servers:
                    self.status(server, key)
                stamps = [client.llen(name) for name in client.keys("tickwire:window:account:*")]
                return stamps == [len(self.servers)]

        return wait_until(is_counted)


@pytest.fixture(scope="module")
def running() -> Iterator[ExitStack]:
    """Redis runs in it."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture(scope="module")
def counted(embedded_for_module: Installation, running: ExitStack) -> Iterator[Counted]:
    redis = PrivateRedis(embedded_for_module.directory)
    running.enter_context(redis.running())
    embedded_for_module.redis_url = redis.url
    with embedded_for_module.serve(PROCESSES) as servers:
        yield Counted(embedded_for_module, redis, servers)


@pytest.mark.row("48–51", "no 5xx, and what was admitted is not given a second time")
def test_requests_are_answered_without_redis_and_counted_in_it_again_afterwards(
    counted: Counted, running: ExitStack, tell: Tell
) -> None:
    servers, key, alone = counted.servers, counted.make_key(), counted.alone
    admitted = rush(servers, [key])[200]
    assert (admitted, counted.alone) == (LIMIT, alone)
    counted.redis.kill()
    admitted += [counted.status(server, key) for server in servers].count(200)
    admitted += rush(servers, [key], 200)[200]
    assert admitted == PROCESSES * LIMIT
    assert counted.alone == alone + PROCESSES + 200
    running.close()
    running.enter_context(counted.redis.running())
    counted.wait_for_redis()
    alone = counted.alone
    assert rush(servers, [counted.make_key()])[200] == LIMIT
    assert counted.alone == alone
    tell(f"admitted {admitted} on {PROCESSES} processes")


@pytest.mark.row("48–51", "every request answered, and revocations hold")
def test_a_paused_redis_refuses_no_request_and_a_key_can_be_revoked_meanwhile(
    counted: Counted, tell: Tell
) -> None:
    key, alone = counted.make_key(), counted.alone
    with counted.redis.paused():
        statuses = rush(counted.servers, [key], LIMIT)
        assert statuses == {200: LIMIT}
        assert counted.alone == alone + LIMIT
        impatient = counted.installation.environment(DEADLINES_TIMES="1")
        assert manage(impatient, "revoke_key", key).returncode == 0
        wait_until(lambda: {counted.status(server, key) for server in counted.servers} == {401})
    counted.wait_for_redis()
    tell(f"answered in the pause: {dict(statuses)}")


@pytest.mark.row("48–51", "each process admits the limit")
def test_each_process_counts_alone_while_redis_is_full(counted: Counted, tell: Tell) -> None:
    key, alone = counted.make_key(), counted.alone
    with counted.redis.client as client:
        client.config_set("maxmemory-policy", "noeviction")
        client.config_set("maxmemory", 1)
        statuses = rush(counted.servers, [key], 200)
        wait_until(lambda: all(server.metric(FULL) for server in counted.servers))
        client.config_set("maxmemory", 0)
    tell(f"admitted {statuses[200]} on {PROCESSES} processes")
    assert statuses == {200: PROCESSES * LIMIT, 429: 200 - PROCESSES * LIMIT}
    assert counted.alone == alone + 200
    counted.wait_for_redis()
