"""/readyz: 200 while requests here would succeed; 503 where this process alone lacks what they need."""

from __future__ import annotations

import json
import os
import secrets
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from redis import Redis

from serving.readiness.answers import READYZ, answer_probe
from tests.factories import make_account, make_key, make_tier
from tests.patience import PATIENCE_S, wait_until
from tests.reliability.conftest import Tell
from tests.reliability.disks.test_engine_disk import full, locked
from tests.reliability.services.private_servers import PrivatePostgres, PrivateRedis
from tests.reliability.services.processes import Installation, Process

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


def readiness(server: Process) -> tuple[int, dict[str, Any]]:
    answer = server.ask("/readyz")
    return answer.status_code, answer.json()


def until_degraded(server: Process, *names: str) -> dict[str, Any]:
    """What it says then; it was ready all the time."""
    said: dict[str, Any] = {}

    def is_so() -> bool:
        nonlocal said
        status, said = readiness(server)
        assert status == 200, said
        return set(said["degraded"]) == set(names)

    wait_until(is_so)
    return said


def until_ready(server: Process) -> None:
    wait_until(lambda: readiness(server)[0] == 200)


def until_reasons(server: Process, *names: str) -> None:
    wait_until(lambda: readiness(server)[1].get("reasons", []) == list(names))


@contextmanager
def altered(database: PrivatePostgres, table: str) -> Iterator[None]:
    """As a migration does it: nobody else reads or writes the table meanwhile."""
    with psycopg.connect(database.url) as other:
        other.execute(f"ALTER TABLE {table} ADD COLUMN added integer")
        yield
        other.rollback()


def test_an_altered_table_fails_no_probe_while_requests_succeed(
    database: PrivatePostgres, installation: Installation, key: str, tell: Tell
) -> None:
    with installation.serve(1) as (server,):
        until_degraded(server, "engine")
        assert server.ask("/api/session", key).status_code == 200
        probes, requests = [], Counter[int]()
        with altered(database, "accounts_controlevent"):
            ends_at = time.monotonic() + LOCKED_FOR_S
            while time.monotonic() < ends_at:
                probes.append(readiness(server))
                requests[server.ask("/api/limits", key).status_code] += 1
                time.sleep(0.05)
    failed = sum(status != 200 for status, _ in probes)
    tell(f"{len(probes)} probes, {failed} failed; requests: {dict(requests)}")
    assert {status for status, _ in probes} == {200}
    assert set(requests) == {200}
    assert any("control_events" in said["degraded"] for _, said in probes)


@pytest.mark.full
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


async def test_a_starting_process_is_not_ready() -> None:
    """`serve` lets nobody in before; with other servers a probe may come earlier."""
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await answer_probe({"method": "GET", "path": READYZ}, send)
    assert sent[0]["status"] == 503
    assert json.loads(sent[1]["body"])["reasons"] == ["starting"]


def test_a_stopping_process_is_not_ready_and_answers_its_last_requests(embedded: Installation) -> None:
    with embedded.orm():
        key = make_key(make_account())
    with embedded.web_process(DRAIN_S=str(PATIENCE_S)) as server:
        until_degraded(server)
        os.kill(server.pid, signal.SIGTERM)
        until_reasons(server, "stopping")
        assert readiness(server)[0] == 503
        assert server.ask("/healthz").status_code == 200
        assert server.ask("/api/limits", key).status_code == 200


def test_a_full_disk_is_named_as_the_reason(embedded: Installation) -> None:
    with embedded.serve(1) as (server,):
        until_degraded(server)
        with full(server):
            said = until_degraded(server, "database_writes")
        assert said["checks"]["database_writes"] == "full"
        until_degraded(server)


@pytest.mark.full
def test_a_database_in_which_another_process_writes_is_named_as_the_reason(embedded: Installation) -> None:
    with embedded.serve(1) as (server,):
        until_degraded(server)
        with locked(embedded):
            said = until_degraded(server, "database_writes")
        assert said["checks"]["database"] == "ok"


@pytest.mark.full
def test_an_outage_of_redis_for_everyone_is_named_and_makes_no_process_unready(
    database: PrivatePostgres, redis: PrivateRedis, tmp_path: Path, tell: Tell
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


def test_a_process_that_alone_cannot_reach_redis_is_not_ready(
    installation: Installation, redis: PrivateRedis
) -> None:
    with Redis.from_url(redis.url) as client:
        client.execute_command("ACL", "SETUSER", "alone", "on", ">word", "~*", "&*", "+@all")
        alone = redis.url.replace("redis://", "redis://alone:word@")
        with installation.serve(1) as (other,), installation.serve(1, REDIS_URL=alone) as (server,):
            until_degraded(server, "engine")
            client.execute_command("ACL", "SETUSER", "alone", "off")
            client.execute_command("CLIENT", "KILL", "USER", "alone")
            until_reasons(server, "redis")
            assert readiness(server)[0] == 503
            assert readiness(other)[0] == 200
            client.execute_command("ACL", "SETUSER", "alone", "on")
            until_ready(server)


@pytest.mark.full
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


PRODUCTION = {
    "PRODUCTION": "1",
    "SECRET_KEY": secrets.token_urlsafe(48),
    "KEY_PEPPER": secrets.token_urlsafe(48),
    "ALLOWED_HOSTS": "tickwire.example",
    "EMAIL_URL": "dummymail://",
}


def test_the_serve_command_collects_the_static_files_itself(installation: Installation) -> None:
    with installation.serve(1, **PRODUCTION) as (server,):
        until_ready(server)
    assert list((installation.directory / "static").glob("staticfiles-*.json"))


def test_missing_static_files_make_a_process_unready(installation: Installation) -> None:
    with installation.serve_stock(**PRODUCTION) as server:
        # Probes ask by whatever address they have, and without TLS.
        until_reasons(server, "static_files")
        assert readiness(server)[0] == 503
        assert server.ask("/healthz").status_code == 200
