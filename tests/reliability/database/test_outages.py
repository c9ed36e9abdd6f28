"""A database that is not there yet, stands still, accepts no changes or has moved: who needs it waits, ends
when told to, or says why it is refused."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from psycopg_pool import ConnectionPool

from config.environment.kinds import leave_standby
from tests.factories import make_account, make_instrument, make_key, make_tiers
from tests.patience import PATIENCE_S, wait_until
from tests.programs.running import interruptible
from tests.programs.services import free_port, redis
from tests.reliability.services.cable import Cable
from tests.reliability.services.engine_processes import RUNS, engine_process
from tests.reliability.services.postgres_pair import PostgresPair
from tests.reliability.services.private_servers import PrivatePostgres, PrivateRedis
from tests.reliability.services.processes import ROOT, Installation, logged, tied
from tests.reliability.services.supervised import is_all_read
from tools.lint.production import PRODUCTION

survives = pytest.mark.row("8", "engine and web processes survive an outage of their database")


@survives
def test_an_engine_waits_for_a_database_that_is_still_starting(tmp_path: Path) -> None:
    database = PrivatePostgres(tmp_path)
    with redis(tmp_path) as url, engine_process(Installation(tmp_path, database.url, url), 1, {}) as engine:
        wait_until(lambda: engine.said("The engine waits for the database") == 1)
        with database.running():
            wait_until(lambda: engine.said(RUNS) == 1)


@survives
@pytest.mark.parametrize(
    ("who", "command"), [("engine", ["run_engine"]), ("service", ["serve", "--port", "0"])]
)
def test_a_process_waiting_for_the_database_stops_on_ctrl_c(
    tmp_path: Path, who: str, command: list[str]
) -> None:
    nowhere = f"postgresql://127.0.0.1:{free_port()}/none"
    environment = Installation(tmp_path, nowhere).environment(**PRODUCTION | {"DATABASE_URL": nowhere})
    log = tmp_path / "log"
    with interruptible(), logged(tied("manage.py", *command), log, environment) as process:
        wait_until(lambda: f"The {who} waits for the database" in log.read_text())
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE_S)
    said = log.read_text()
    assert said.endswith("\nStopped.\n")
    assert "Traceback" not in said


@survives
def test_an_engine_whose_database_does_not_exist_reports_it_and_exits(tmp_path: Path) -> None:
    database = PrivatePostgres(tmp_path)
    with database.running(), redis(tmp_path) as url:
        other = database.url.rpartition("/")[0] + "/nobody_made_this"
        ended = Installation(tmp_path, other, url).manage("run_engine")

    assert ended.returncode == 1
    assert ended.stderr.strip().endswith(
        'database "nobody_made_this" does not exist. Check DATABASE_URL and that it is running.'
    )
    assert "Traceback" not in ended.stderr


# Beyond what these take to stop in order. The database stands still until they have ended.
STOP_WITHIN_S = 2
ends = pytest.mark.row("8, 52", "processes exit on SIGTERM although PostgreSQL is frozen")


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


@pytest.fixture
def database(tmp_path: Path, stack: ExitStack) -> PrivatePostgres:
    made = PrivatePostgres(tmp_path)
    stack.enter_context(made.running())
    return made


def started(installation: Installation, *command: str) -> subprocess.Popen[bytes]:
    environment = installation.environment(STOP_WITHIN_S=str(STOP_WITHIN_S), DRAIN_S="0")
    with (installation.directory / "log").open("wb") as log:
        return subprocess.Popen(
            tied("manage.py", *command), cwd=ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT
        )


def is_healthy(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/healthz", timeout=PATIENCE_S).is_success
    except httpx.TransportError:
        return False


def ended_with(process: subprocess.Popen[bytes], database: PrivatePostgres) -> int | None:
    """None: not at all."""
    with database.paused():
        # Somebody asks it, in whichever thread, and is not answered.
        wait_until(lambda: not is_all_read(database.port))
        os.kill(process.pid, signal.SIGTERM)
        try:
            return process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return None


@ends
def test_a_server_exits_while_postgresql_is_frozen(database: PrivatePostgres, tmp_path: Path) -> None:
    port = free_port()
    process = started(Installation(tmp_path, database.url), "serve", "--port", str(port))
    wait_until(lambda: is_healthy(port))
    assert ended_with(process, database) == 1
    assert "Stopping took longer than 2 s" in (tmp_path / "log").read_text()


@ends
def test_an_engine_exits_while_postgresql_is_frozen(
    database: PrivatePostgres, tmp_path: Path, stack: ExitStack
) -> None:
    redis = PrivateRedis(tmp_path)
    stack.enter_context(redis.running())
    process = started(Installation(tmp_path, database.url, redis.url), "run_engine")
    wait_until(lambda: b"The engine runs" in (tmp_path / "log").read_bytes())
    assert ended_with(process, database) == 1
    assert "Stopping took longer than 2 s" in (tmp_path / "log").read_text()


SWITCH = "ALTER DATABASE postgres SET default_transaction_read_only = on"


@pytest.mark.row("8", "503, never 500")
def test_an_analysis_on_a_read_only_database_returns_503_with_the_reason(tmp_path: Path) -> None:
    database = PrivatePostgres(tmp_path)
    with database.running():
        installation = Installation(tmp_path, database.url)
        with installation.orm():
            make_tiers()
            make_instrument("EURUSD")
            key = make_key(make_account())
        with installation.serve(1) as (server,):
            assert server.ask("/api/symbols", key).status_code == 200
            with psycopg.connect(database.url, autocommit=True) as connection:
                connection.execute(SWITCH)
            database.break_connections()
            answers: list[httpx.Response] = []

            def names_the_reason() -> bool:
                """Each thread of the server learns of its own broken connection first."""
                answers.append(server.ask("/api/analysis/EURUSD", key))
                return "accepts no changes" in answers[-1].json()["error"]["message"]

            wait_until(names_the_reason)
            wait_until(lambda: server.ask("/api/signals", key).status_code == 200)
    assert {(answer.status_code, answer.json()["error"]["code"]) for answer in answers} == {
        (503, "overloaded")
    }
    assert answers[-1].headers["Retry-After"] == "5"


@survives
def test_an_engine_on_a_read_only_database_is_not_ready_and_says_why(tmp_path: Path) -> None:
    database, port = PrivatePostgres(tmp_path), free_port()

    def says(status: int, found: str) -> bool:
        try:
            answer = httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=PATIENCE_S)
        except httpx.TransportError:
            return False
        return (answer.status_code, answer.json()["checks"]["database"]) == (status, found)

    with database.running(), redis(tmp_path) as url:
        installation = Installation(tmp_path, database.url, url)
        with engine_process(installation, 1, {"ENGINE_PORT": str(port)}):
            wait_until(lambda: says(200, "ok"))
            with psycopg.connect(database.url, autocommit=True) as connection:
                connection.execute(SWITCH)
            database.break_connections()
            wait_until(lambda: says(503, "read-only"))


def led_to_standby(pool: ConnectionPool[Any]) -> bool:
    with pool.connection() as connection:
        (is_standby,) = connection.execute("SELECT pg_is_in_recovery()").fetchone()
    return bool(is_standby)


@pytest.mark.row("8", "no connection stays on a read-only standby")
def test_a_connection_to_a_standby_is_dropped_after_one_use(tmp_path: Path) -> None:
    pair = PostgresPair(tmp_path)
    cable = Cable(pair.ports[1])
    url = f"postgresql://postgres@127.0.0.1:{cable.port}/postgres"
    with (
        pair.running(),
        ConnectionPool(url, min_size=1, max_size=1, reset=leave_standby, timeout=PATIENCE_S) as pool,
        ConnectionPool(url, min_size=1, max_size=1, timeout=PATIENCE_S) as control,
    ):
        assert led_to_standby(pool)
        assert led_to_standby(control)
        cable.to = pair.ports[0]
        # One may have been made before the address moved.
        led_to_standby(pool)
        assert not led_to_standby(pool)
        assert led_to_standby(control)
    cable.close()
