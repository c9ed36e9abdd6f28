"""What fails in the drill: each function returns once the fault is over."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import ExitStack
from typing import Any, cast

import psycopg
from redis import Redis

from accounts.open_streams.redis_slots import MORE
from core.redis.connections import key_of
from tests.nightly.reliability.drill.loaded import LoadedInstallation
from tests.patience import wait_until
from tests.programs.redis_group import RedisGroup
from tests.reliability.clocks.clock import Clock
from tests.reliability.services.cable import Cable
from tests.reliability.services.engine_processes import RUNS, EngineProcess
from tests.reliability.services.frozen import frozen
from tests.reliability.services.postgres_pair import PostgresPair
from tests.reliability.services.private_servers import PrivatePostgres, PrivateRedis
from tests.reliability.services.supervised import Supervised

from .units import WebUnit

AWAY_S, FROZEN_S, STEP_S, STEP_AT_S = 5.0, 30, 10, 50
READ_ONLY = "ALTER DATABASE postgres SET default_transaction_read_only = {}"


class Servers:
    """The database and the Redis of an installation, which stop and start again on their ports."""

    def __init__(self, database: PrivatePostgres, redis: PrivateRedis) -> None:
        self.database, self.redis = database, redis
        self._running = {"database": ExitStack(), "redis": ExitStack()}

    def start(self, name: str) -> None:
        served = self.database.running() if name == "database" else self.redis.running()
        self._running[name].enter_context(served)

    def stop(self, name: str) -> None:
        self._running[name].close()


# The engine


def kill_leader(loaded: LoadedInstallation) -> None:
    before = loaded.leader
    before.kill()
    await_successor(loaded, before)


def stop_leader(loaded: LoadedInstallation) -> None:
    before = loaded.leader
    os.kill(before.pid, signal.SIGTERM)
    await_successor(loaded, before)


def freeze_leader(loaded: LoadedInstallation) -> None:
    """Until long after its lease was taken by the other, which it learns when it wakes up."""
    with loaded.leader.stopped():
        time.sleep(2 * AWAY_S)


def await_successor(loaded: LoadedInstallation, before: EngineProcess) -> None:
    wait_until(lambda: any(engine.said(RUNS) for engine in loaded.engines if engine is not before))
    loaded.engines.remove(before)


# Redis


def restart_redis(servers: Servers) -> None:
    """Killed, and back with nothing."""
    servers.redis.kill()
    time.sleep(AWAY_S)
    servers.stop("redis")
    servers.start("redis")


def flush_redis(servers: Servers) -> None:
    with servers.redis.client as client:
        client.flushall()


def fill_redis(servers: Servers) -> None:
    with servers.redis.client as client:
        client.config_set("maxmemory-policy", "noeviction")
        client.config_set("maxmemory", 1)
        time.sleep(AWAY_S)
        client.config_set("maxmemory", 0)


def restore_redis(servers: Servers) -> None:
    """Killed, and back with what it knew some seconds ago."""
    with servers.redis.client as client:
        client.save()
    time.sleep(AWAY_S)
    servers.redis.kill()
    servers.stop("redis")
    servers.start("redis")
    servers.redis.directory.joinpath("dump.rdb").unlink()


def fail_over_redis(group: RedisGroup) -> None:
    before = group.master
    before.kill()
    group.wait_for_another(before)


def freeze_redis(group: RedisGroup) -> None:
    """The old master wakes up when there is another, and still takes itself for it."""
    before = group.master
    with before.stopped():
        group.wait_for_another(before)
        time.sleep(AWAY_S)


# PostgreSQL


def restart_postgresql(servers: Servers) -> None:
    """As after a crash."""
    servers.stop("database")
    time.sleep(AWAY_S)
    servers.start("database")


def make_postgresql_read_only(servers: Servers) -> None:
    for setting in ("on", "off"):
        with psycopg.connect(servers.database.url, autocommit=True) as connection:
            connection.execute("SET default_transaction_read_only = off")
            connection.execute(READ_ONLY.format(setting))
        servers.database.break_connections()
        if setting == "on":
            time.sleep(AWAY_S)


def fill_postgresql(servers: Servers) -> None:
    """Its disk has no room left. A server that stops for that is started again, as an operator would."""
    filler = servers.database.data.parent / "filler"
    subprocess.run(
        ["dd", "if=/dev/zero", f"of={filler}", "bs=64k"], capture_output=True, timeout=60, check=False
    )
    assert os.statvfs(filler).f_bavail == 0, "the disk was not full"
    time.sleep(2 * AWAY_S)
    filler.unlink()
    if not answers(servers.database.url):
        servers.stop("database")
        servers.start("database")


def answers(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True


def fail_over_postgresql(pair: PostgresPair) -> None:
    pair.end_primary()
    time.sleep(AWAY_S)
    pair.promote()


# The machines


def cut_machine_off(cables: list[Cable]) -> None:
    """One web process from the database and Redis; its clients still reach it."""
    with ExitStack() as cut:
        for cable in cables:
            cut.enter_context(cable.cut())
        time.sleep(2 * AWAY_S)


def freeze_web_process(unit: WebUnit) -> None:
    """Until it was killed for that, and serves again."""
    starts = unit.starts
    os.kill(unit.pid, signal.SIGSTOP)
    wait_until(lambda: unit.starts > starts)


def await_evenness(servers: Servers) -> None:
    """All streams are with the other process."""
    with servers.redis.client as client:
        wait_until(lambda: len(held := streams_held(client)) == 2 and max(held) - min(held) <= MORE)


def streams_held(client: Redis) -> list[int]:
    """By each process that has any."""
    keys: Any = client.keys(key_of("streams:process:*"))
    return [cast(int, client.hlen(key)) for key in keys]


def freeze_unwatched(unit: WebUnit) -> None:
    with frozen([unit.pid]):
        time.sleep(FROZEN_S)


def kill_worker(workers: Supervised) -> None:
    victim = workers.serving[0]
    os.kill(victim, signal.SIGKILL)
    wait_until(lambda: victim not in workers.workers and len(workers.serving) == 2)


def restart_workers(workers: Supervised) -> None:
    """One after the other, without the others noticing."""
    before = set(workers.serving)
    workers.send(signal.SIGHUP)
    wait_until(lambda: len(now := workers.serving) == 2 and before.isdisjoint(now))


def step_clock(clock: Clock) -> None:
    """Of all processes but the servers': ahead, and back. What is pushed has the right time all along. While
    the clock is ahead, another minute begins by it."""
    time.sleep((STEP_AT_S - time.time()) % 60)
    clock.step(STEP_S)
    time.sleep(AWAY_S)
    clock.step(0)
    time.sleep(AWAY_S)
