"""/readyz: 200 while requests here would succeed; 503 where this process alone lacks what they need."""

from __future__ import annotations

import json
import os
import secrets
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from redis import Redis

from serving.readiness import READYZ, answer_probe
from tests.patience import PATIENCE_S, wait_until
from tests.reliability.disks.test_engine_disk import full, locked
from tests.reliability.services.private_servers import PrivatePostgres, PrivateRedis
from tests.reliability.services.processes import Installation, Process

pytestmark = [
    # How soon a fault counts is the subject.
    pytest.mark.usefixtures("prompt"),
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
    return installation.make_key(requests_per_minute=1_000_000)


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


def until_reasons(server: Process, *names: str) -> None:
    wait_until(lambda: readiness(server)[1].get("reasons", []) == list(names))


def test_an_altered_table_fails_no_probe_while_requests_succeed(
    database: PrivatePostgres, installation: Installation, key: str
) -> None:
    with installation.serve(1) as (server,):
        until_degraded(server, "engine")
        wait_until(lambda: server.ask("/api/session", key).status_code == 200)
        with psycopg.connect(database.url) as other:
            # As a migration does it: nobody else reads or writes the table meanwhile.
            other.execute("ALTER TABLE accounts_controlevent ADD COLUMN added integer")
            until_degraded(server, "control_events", "engine")
            wait_until(lambda: server.ask("/api/limits", key).status_code == 200)
            other.rollback()


async def test_a_starting_process_is_not_ready() -> None:
    """`serve` lets nobody in before; with other servers a probe may come earlier."""
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await answer_probe({"method": "GET", "path": READYZ}, send)
    assert sent[0]["status"] == 503
    assert json.loads(sent[1]["body"])["reasons"] == ["starting"]


def test_a_stopping_process_is_not_ready_and_answers_its_last_requests(embedded: Installation) -> None:
    key = embedded.make_key()
    with embedded.web_process(DRAIN_S=str(PATIENCE_S)) as server:
        until_degraded(server)
        os.kill(server.pid, signal.SIGTERM)
        until_reasons(server, "stopping")
        assert readiness(server)[0] == 503
        assert server.ask("/healthz").status_code == 200
        assert server.ask("/api/limits", key).status_code == 200
        os.kill(server.pid, signal.SIGKILL)


@pytest.mark.parametrize("fault", ["full", "locked"])
def test_a_database_that_takes_no_writes_is_named_as_the_reason(embedded: Installation, fault: str) -> None:
    with embedded.serve(1) as (server,):
        until_degraded(server)
        with full(server) if fault == "full" else locked(embedded):
            said = until_degraded(server, "database_writes")
        assert said["checks"]["database"] == "ok"
        assert (said["checks"]["database_writes"] == "full") == (fault == "full")
        until_degraded(server)


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
            wait_until(lambda: readiness(server)[0] == 200)


PRODUCTION = {
    "PRODUCTION": "1",
    "SECRET_KEY": secrets.token_urlsafe(48),
    "KEY_PEPPER": secrets.token_urlsafe(48),
    "ALLOWED_HOSTS": "tickwire.example",
    "EMAIL_URL": "dummymail://",
}


def test_missing_static_files_make_a_process_unready(installation: Installation) -> None:
    with installation.serve_stock(**PRODUCTION) as server:
        # Probes ask by whatever address they have, and without TLS.
        until_reasons(server, "static_files")
        assert readiness(server)[0] == 503
        assert server.ask("/healthz").status_code == 200
