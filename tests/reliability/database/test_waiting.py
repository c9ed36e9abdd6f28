"""Started before its database is there, a process waits for it; where it will never be let in, it says so."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S, wait_until
from tests.programs.running import interruptible
from tests.programs.services import free_port, redis
from tests.reliability.services.engine_processes import RUNS, engine_process
from tests.reliability.services.private_servers import PrivatePostgres
from tests.reliability.services.processes import ROOT, Installation, tied
from tools.lint.production import PRODUCTION

pytestmark = [
    pytest.mark.row("8", "engine and web processes survive an outage of their database"),
    pytest.mark.usefixtures("rows"),
]


def test_an_engine_waits_for_a_database_that_is_still_starting(tmp_path: Path) -> None:
    database = PrivatePostgres(tmp_path)
    with redis(tmp_path) as url, engine_process(Installation(tmp_path, database.url, url), 1, {}) as engine:
        wait_until(lambda: engine.said("The engine waits for the database") == 1)
        with database.running():
            wait_until(lambda: engine.said(RUNS) == 1)


@pytest.mark.parametrize(
    ("who", "command"), [("engine", ["run_engine"]), ("service", ["serve", "--port", "0"])]
)
def test_a_process_waiting_for_the_database_stops_on_ctrl_c(
    tmp_path: Path, who: str, command: list[str]
) -> None:
    nowhere = f"postgresql://127.0.0.1:{free_port()}/none"
    environment = Installation(tmp_path, nowhere).environment(**PRODUCTION | {"DATABASE_URL": nowhere})
    log = tmp_path / "log"
    with interruptible(), log.open("wb") as out:
        process = subprocess.Popen(
            tied("manage.py", *command), cwd=ROOT, env=environment, stdout=out, stderr=out
        )
    try:
        wait_until(lambda: f"The {who} waits for the database" in log.read_text())
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE_S)
    finally:
        process.kill()
    said = log.read_text()
    assert said.endswith("\nStopped.\n")
    assert "Traceback" not in said


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
