import os
import select
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from shutil import which
from signal import Signals
from typing import Any

import psycopg
import pytest
from redis import Redis

from tests.patience import PATIENCE_S, wait_until

from . import services
from .running import interruptible

pytestmark = pytest.mark.served

ROOT = Path(__file__).parents[2]
Start = Callable[[Path, int], AbstractContextManager[str]]


def ask_redis(url: str, *command: str | int) -> Any:
    with Redis.from_url(url, decode_responses=True) as client:
        return client.execute_command(*command)


def read_redis_pid(url: str) -> int:
    return int(ask_redis(url, "INFO", "server")["process_id"])


def read_postgres_pid(directory: Path) -> int:
    (file,) = directory.glob("**/postmaster.pid")
    return int(file.read_text().splitlines()[0])


def is_running(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def make_program(directory: Path, script: str) -> list[str]:
    program = directory / "program"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return [str(program)]


def make_runner(temporary: Path) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TEST_")}
    command = [sys.executable, "-m", "tests.programs.services"]
    environment["TMPDIR"] = str(temporary)
    with interruptible():
        return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)  # noqa: S603


def read_exports(runner: subprocess.Popen[str]) -> dict[str, str]:
    assert runner.stdout
    lines = [runner.stdout.readline() for _ in range(2)]
    return dict(line.removeprefix("export ").strip().split("=", 1) for line in lines)


def end_runner(temporary: Path, signum: Signals) -> int:
    """Signal `python -m tests.programs.services` and see both of its servers end; returns its exit code."""
    with make_runner(temporary) as runner:
        try:
            urls = read_exports(runner)
            pids = (read_postgres_pid(temporary), read_redis_pid(urls["REDIS_URL"]))
            # A descriptor, because the id of an ended process may be taken again.
            servers = [os.pidfd_open(pid) for pid in pids]
            runner.send_signal(signum)
            for server in servers:
                assert select.select([server], [], [], PATIENCE_S)[0]
                os.close(server)
            return runner.wait(PATIENCE_S)
        finally:
            runner.kill()


def test_postgres_answers_and_is_recent(tmp_path: Path) -> None:
    with services.postgres(tmp_path) as url, psycopg.connect(url) as connection:
        (version,) = connection.execute("SELECT version()").fetchone() or ("",)
        assert version.startswith("PostgreSQL")
        assert connection.info.server_version >= 140_000


def test_postgres_speaks_utf8_and_utc(tmp_path: Path) -> None:
    with services.postgres(tmp_path) as url, psycopg.connect(url) as connection:
        query = "SELECT upper('é'), current_setting('TimeZone'), current_setting('server_encoding')"
        assert connection.execute(query).fetchone() == ("É", "UTC", "UTF8")


def test_redis_answers_ping(tmp_path: Path) -> None:
    with services.redis(tmp_path) as url:
        assert ask_redis(url, "PING") is True


def test_redis_runs_lua_that_reads_its_clock(tmp_path: Path) -> None:
    with services.redis(tmp_path) as url:
        seconds, microseconds = ask_redis(url, "EVAL", "return redis.call('TIME')", 0)
        assert int(seconds) > 1_700_000_000
        assert 0 <= int(microseconds) < 1_000_000


def test_postgres_and_its_data_are_gone_after_the_context(tmp_path: Path) -> None:
    with services.postgres(tmp_path):
        pid = read_postgres_pid(tmp_path)
        assert is_running(pid)
    assert not is_running(pid)
    assert [path.name for path in tmp_path.iterdir()] == ["postgres.log"]


def test_redis_is_gone_after_the_context(tmp_path: Path) -> None:
    with services.redis(tmp_path) as url:
        pid = read_redis_pid(url)
        assert is_running(pid)
    assert not is_running(pid)
    assert [path.name for path in tmp_path.iterdir()] == ["redis.log"]


def test_error_inside_the_context_stops_the_server_too(tmp_path: Path) -> None:
    with suppress(KeyboardInterrupt), services.redis(tmp_path) as url:
        pid = read_redis_pid(url)
        raise KeyboardInterrupt
    assert not is_running(pid)


@pytest.mark.parametrize("start", [services.postgres, services.redis])
def test_occupied_port_is_told_in_the_server_s_own_words(tmp_path: Path, start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as occupied:
        port = occupied.getsockname()[1]
        with pytest.raises(services.PortTaken, match="Address already in use"), start(tmp_path, port):
            pass


def test_no_port_is_chosen_again_before_its_server_could_take_it() -> None:
    chosen = [services.free_port() for _ in range(60)]
    assert len(set(chosen)) == len(chosen)


def test_broken_binary_is_told_with_exit_code_and_log(tmp_path: Path) -> None:
    command = make_program(tmp_path, "echo cannot read my configuration; exit 3")
    server = services.serving(command, tmp_path / "log", Signals.SIGTERM)
    with pytest.raises(services.ServiceError, match="(?s)ended with 3.*cannot read my configuration"), server:
        pass


def test_missing_binary_is_told(tmp_path: Path) -> None:
    server = services.serving([str(tmp_path / "nowhere")], tmp_path / "log", Signals.SIGTERM)
    with pytest.raises((services.ServiceError, FileNotFoundError), match="No such file"), server:
        pass


def test_server_that_never_gets_ready_is_told_and_stopped(tmp_path: Path) -> None:
    command = make_program(tmp_path, f"echo $$ > {tmp_path}/pid; echo still loading; exec sleep 60")
    log = tmp_path / "log"

    def gives_up() -> bool:
        """Sooner than any machine starts the program, or later: what it said by then is told."""
        with pytest.raises(services.ServiceError, match="not ready after") as told:
            services.wait_until_ready(process, log, 0.01)
        return "still loading" in str(told.value)

    with log.open("wb") as out, subprocess.Popen(command, stdout=out) as process:
        wait_until(gives_up)
        services.stop(process, Signals.SIGTERM)
    assert not is_running(int((tmp_path / "pid").read_text()))


def test_broken_initdb_is_told(tmp_path: Path) -> None:
    (initdb,) = make_program(tmp_path, "echo no space left >&2; exit 1")
    with pytest.raises(services.ServiceError, match="(?s)initdb ended with 1.*no space left"):
        services.create_cluster(Path(initdb), tmp_path / "data")


def test_given_urls_start_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_DATABASE_URL", "postgresql://elsewhere/db")
    monkeypatch.setenv("TEST_REDIS_URL", "redis://elsewhere/1")
    with services.database_url() as database, services.redis_url() as channel:
        assert (database, channel) == ("postgresql://elsewhere/db", "redis://elsewhere/1")


@pytest.mark.parametrize("signum", [Signals.SIGINT, Signals.SIGTERM])
def test_runner_prints_urls_and_leaves_nothing_behind(tmp_path: Path, signum: Signals) -> None:
    assert end_runner(tmp_path, signum) == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(which("setpriv") is None, reason="only setpriv (util-linux) ties a server to its runner")
def test_killed_runner_takes_its_servers_along(tmp_path: Path) -> None:
    assert end_runner(tmp_path, Signals.SIGKILL) == -Signals.SIGKILL
