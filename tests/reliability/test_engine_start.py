"""An engine that is started before its database is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.patience import PATIENCE_S
from tests.reliability.engine_processes import RUNS, engine_process
from tests.reliability.engines import poll
from tests.reliability.faults import PrivatePostgres
from tests.reliability.processes import Installation
from tests.services import redis


@pytest.mark.row("8", "an engine outlives its database")
@pytest.mark.usefixtures("rows")
def test_engine_waits_for_a_database_that_is_still_starting(tmp_path: Path) -> None:
    database = PrivatePostgres(tmp_path)
    with redis(tmp_path) as url, engine_process(Installation(tmp_path, database.url, url), 1, {}) as engine:
        poll(lambda: engine.said("The engine waits for the database") == 1, PATIENCE_S)
        with database.running():
            poll(lambda: engine.said(RUNS) == 1, PATIENCE_S)
