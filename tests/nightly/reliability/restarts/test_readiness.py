"""More faults of one process or of all, and whether /readyz tells them apart."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from tests.factories import make_account, make_key, make_tier
from tests.patience import wait_until
from tests.reliability.disks.test_engine_disk import locked
from tests.reliability.restarts.test_readiness import PRODUCTION, readiness, until_degraded, until_ready
from tests.reliability.services.private_servers import PrivatePostgres, PrivateRedis
from tests.reliability.services.processes import Installation

LOCKED_FOR_S = 6.0
pytestmark = [
    pytest.mark.usefixtures("rows"),
    pytest.mark.row(
        "readiness", "a process is ready while its requests succeed, and unready for faults of its own"
    ),
]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivatePostgres]:
    database = PrivatePostgres(tmp_path_factory.mktemp("readiness"))
    with database.running():
        yield database


@pytest.fixture
def redis(tmp_path: Path) -> PrivateRedis:
    return PrivateRedis(tmp_path)


@pytest.fixture
def installation(database: PrivatePostgres, redis: PrivateRedis, tmp_path: Path) -> Iterator[Installation]:
    with redis.running():
        yield Installation(tmp_path, database.url, redis.url)


@pytest.fixture
def key(installation: Installation) -> str:
    with installation.orm():
        return make_key(make_account(tier=make_tier("many", requests_per_minute=1_000_000)))


def test_a_database_that_cannot_be_written_is_named_as_the_reason(
    database: PrivatePostgres, installation: Installation, key: str
) -> None:
    with installation.serve(1) as (server,):
        until_degraded(server, "engine")
        with psycopg.connect(database.url, autocommit=True) as staff:
            staff.execute("ALTER SYSTEM SET default_transaction_read_only = on")
            staff.execute("SELECT pg_reload_conf()")
            said = until_degraded(server, "database_writes", "engine")
            assert said["checks"]["database_writes"] == "read-only"
            assert server.ask("/api/symbols", key).status_code == 200
            staff.execute("SET default_transaction_read_only = off")
            staff.execute("ALTER SYSTEM RESET default_transaction_read_only")
            staff.execute("SELECT pg_reload_conf()")
        until_degraded(server, "engine")


def test_a_database_in_which_another_process_writes_is_named_as_the_reason(embedded: Installation) -> None:
    with embedded.serve(1) as (server,):
        until_degraded(server)
        with locked(embedded):
            said = until_degraded(server, "database_writes")
        assert said["checks"]["database"] == "ok"


def test_an_outage_of_redis_for_everyone_is_named_and_makes_no_process_unready(
    database: PrivatePostgres, redis: PrivateRedis, tmp_path: Path
) -> None:
    installation = Installation(tmp_path, database.url, redis.url)
    with ExitStack() as running:
        running.enter_context(redis.running())
        with installation.serve(2) as servers:
            for server in servers:
                until_degraded(server, "engine")
            running.close()
            for server in servers:
                until_degraded(server, "engine", "redis")
            # Long enough for what the others found before the loss to have been mistaken for a later finding.
            ends_at, seen = time.monotonic() + LOCKED_FOR_S, set()
            while time.monotonic() < ends_at:
                seen |= {readiness(server)[0] for server in servers}
                time.sleep(0.1)
    assert seen == {200}


def test_a_process_that_alone_cannot_reach_the_database_is_not_ready(
    database: PrivatePostgres, installation: Installation
) -> None:
    with psycopg.connect(database.url, autocommit=True) as staff:
        staff.execute("CREATE ROLE alone SUPERUSER LOGIN")
        url = database.url.replace("postgres@", "alone@")
        with installation.serve(1) as (other,), installation.serve(1, DATABASE_URL=url) as (server,):
            until_degraded(server, "engine")
            staff.execute("ALTER ROLE alone NOLOGIN")
            staff.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'alone'")
            wait_until(lambda: "database" in readiness(server)[1].get("reasons", []))
            assert readiness(server)[0] == 503
            assert readiness(other)[0] == 200
            staff.execute("ALTER ROLE alone LOGIN")
            until_ready(server)


def test_the_serve_command_collects_the_static_files_itself(installation: Installation) -> None:
    with installation.serve(1, **PRODUCTION) as (server,):
        until_ready(server)
    assert list((installation.directory / "static").glob("staticfiles-*.json"))
