"""The cases of the drill: each starts an installation and lets one thing after the other fail."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from tests.nightly.deploy.proxies import started
from tests.programs.redis_group import RedisGroup
from tests.reliability.clocks.clock import Clock
from tests.reliability.services.cable import Cable
from tests.reliability.services.postgres_pair import PostgresPair
from tests.reliability.services.private_servers import PrivatePostgres, PrivateRedis
from tests.reliability.services.processes import Installation
from tests.reliability.services.supervised import supervised

from . import faults
from .damage import MINUTE_S, Damage
from .loaded import Size, furnish, under_load
from .report import NotTried
from .units import WebUnit

FAILOVER_SIZE = Size(1_000, 200.0, 20)
DISK, FULL_DISK = "size=640m", "PostgreSQL's disk is full for 10 s"
# What the tests of the proxies make smaller, and the name by which clients call them here.
SHIPPED: dict[str, Any] = {"host": "127.0.0.1", "idle_s": 60, "connections": 200}
Case = Callable[[Path, Size], Iterator[Damage]]


def servers_of(
    directory: Path, running: ExitStack, disk: Path | None = None
) -> tuple[Installation, faults.Servers]:
    """What is acknowledged here is on the disk."""
    servers = faults.Servers(PrivatePostgres(disk or directory, is_forgetful=False), PrivateRedis(directory))
    for name in ("database", "redis"):
        servers.start(name)
        running.callback(servers.stop, name)
    return Installation(directory, servers.database.url, servers.redis.url), servers


def engines_fail(directory: Path, size: Size) -> Iterator[Damage]:
    with ExitStack() as running:
        installation, _ = servers_of(directory, running)
        loaded = running.enter_context(under_load(installation, size))
        for name, fault in (
            ("The leading engine is killed", faults.kill_leader),
            ("The leading engine is stopped", faults.stop_leader),
            ("The leading engine is frozen for 10 s", faults.freeze_leader),
        ):
            yield loaded.measure(name, partial(fault, loaded))
            if len(loaded.engines) < 2:
                loaded.start_engine()


def servers_fail(directory: Path, size: Size) -> Iterator[Damage]:
    with ExitStack() as running:
        installation, servers = servers_of(directory, running)
        loaded = running.enter_context(under_load(installation, size))
        for name, fault in (
            ("Redis is restarted, empty after 5 s", faults.restart_redis),
            ("Redis is flushed", faults.flush_redis),
            ("Redis is full for 5 s", faults.fill_redis),
            ("Redis comes back from a snapshot 5 s old", faults.restore_redis),
        ):
            yield loaded.measure(name, partial(fault, servers), MINUTE_S)
        for name, fault in (
            ("PostgreSQL is restarted, away for 5 s", faults.restart_postgresql),
            ("PostgreSQL is read-only for 5 s", faults.make_postgresql_read_only),
        ):
            yield loaded.measure(name, partial(fault, servers))


def disk_is_full(directory: Path, size: Size) -> Iterator[Damage]:
    if os.geteuid() != 0:
        raise NotTried(FULL_DISK, "only root can give PostgreSQL a small disk")
    with ExitStack() as running:
        disk = directory / "disk"
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", DISK, "tmpfs", str(disk)], check=True)
        running.callback(subprocess.run, ["umount", "--lazy", str(disk)], check=True)
        disk.chmod(0o755)
        installation, servers = servers_of(directory, running, disk)
        loaded = running.enter_context(under_load(installation, size))
        yield loaded.measure(FULL_DISK, partial(faults.fill_postgresql, servers))


def redis_fails_over(directory: Path, size: Size) -> Iterator[Damage]:
    for number, (name, fault) in enumerate(
        (
            ("Redis is killed, Sentinel names another", faults.fail_over_redis),
            ("Redis is frozen, Sentinel names another, the old one wakes up", faults.freeze_redis),
        )
    ):
        place = directory / str(number)
        place.mkdir()
        with ExitStack() as running:
            group = RedisGroup(place / "redis")
            database = PrivatePostgres(place, is_forgetful=False)
            running.enter_context(database.running())
            running.enter_context(group.running())
            installation = Installation(place, database.url, group.url)
            loaded = running.enter_context(under_load(installation, FAILOVER_SIZE))
            yield loaded.measure(name, partial(fault, group), MINUTE_S)


def postgresql_fails_over(directory: Path, size: Size) -> Iterator[Damage]:
    pair, redis = PostgresPair(directory), PrivateRedis(directory)
    with (
        pair.running(),
        redis.running(),
        under_load(Installation(directory, pair.url, redis.url), size) as loaded,
    ):
        fault = partial(faults.fail_over_postgresql, pair)
        yield loaded.measure("PostgreSQL dies, its standby is promoted after 5 s", fault)


def workers_fail(directory: Path, size: Size) -> Iterator[Damage]:
    with ExitStack() as running:
        installation, _ = servers_of(directory, running)
        furnish(installation)
        workers = running.enter_context(supervised(installation, 2))
        port = workers.server.port
        loaded = running.enter_context(under_load(installation, size, ports=[port]))
        for name, fault in (
            ("A worker is killed", faults.kill_worker),
            ("The workers are restarted one by one", faults.restart_workers),
        ):
            yield loaded.measure(name, partial(fault, workers))


def web_process_is_frozen(directory: Path, size: Size) -> Iterator[Damage]:
    """Through each proxy as it is shipped. Containers have no watchdog, and Caddy is in front of them."""
    for proxy, is_watched, name, fault in (
        ("nginx", True, "is frozen", faults.freeze_web_process),
        ("haproxy", True, "is frozen", faults.freeze_web_process),
        ("caddy", False, f"is frozen for {faults.FROZEN_S} s", faults.freeze_unwatched),
    ):
        place = directory / proxy
        place.mkdir()
        with ExitStack() as running:
            installation, servers = servers_of(place, running)
            furnish(installation)
            units = [running.enter_context(WebUnit(installation, is_watched=is_watched)) for _ in range(2)]
            front = running.enter_context(
                started(proxy, place / "proxy", [unit.port for unit in units], **SHIPPED)
            )
            loaded = running.enter_context(under_load(installation, size, ports=[front.http]))
            yield loaded.measure(f"A web process behind {proxy} {name}", partial(fault, units[0]))
            if proxy == "haproxy":
                yield loaded.measure("Its streams come back to it", partial(faults.await_evenness, servers))


def machine_is_cut_off(directory: Path, size: Size) -> Iterator[Damage]:
    with ExitStack() as running:
        installation, servers = servers_of(directory, running)
        cables = [Cable(servers.database.port), Cable(servers.redis.port)]
        for cable in cables:
            running.callback(cable.close)
        second = {
            "DATABASE_URL": servers.database.url.replace(str(servers.database.port), str(cables[0].port)),
            "REDIS_URL": servers.redis.url.replace(str(servers.redis.port), str(cables[1].port)),
        }
        loaded = running.enter_context(under_load(installation, size, second=second))
        fault = partial(faults.cut_machine_off, cables)
        yield loaded.measure("One of two machines is cut off for 10 s", fault, MINUTE_S)


def clock_is_set(directory: Path, size: Size) -> Iterator[Damage]:
    with ExitStack() as running:
        installation, _ = servers_of(directory, running)
        clock = Clock(directory)
        loaded = running.enter_context(under_load(installation, size, environment=clock.environment))
        fault = partial(faults.step_clock, clock)
        yield loaded.measure(f"The machines' clock is set {faults.STEP_S} s ahead, and back", fault)


CASES: tuple[Case, ...] = (
    engines_fail,
    servers_fail,
    disk_is_full,
    redis_fails_over,
    postgresql_fails_over,
    workers_fail,
    web_process_is_frozen,
    machine_is_cut_off,
    clock_is_set,
)
