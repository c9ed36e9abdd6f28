"""Whether the operator of an upgrade is told which version runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.program.version import VERSION
from tests.programs.services import free_port, redis
from tests.reliability.services.private_servers import PrivatePostgres
from tests.reliability.services.processes import Installation
from tests.reliability.upgrade.versions import told_version

from .test_static_files import PRODUCTION

pytestmark = pytest.mark.row("upgrade", "the running version can be queried")


def test_the_documented_command_reports_the_running_version(tmp_path: Path) -> None:
    """It answers no name but its own, and has no token, as the units and compose have none."""
    database, port = PrivatePostgres(tmp_path), free_port()
    changes = PRODUCTION | {"METRICS_TOKEN": "", "METRICS_PORT": str(port)}
    with database.running(), redis(tmp_path) as redis_url:
        installation = Installation(tmp_path, database.url, redis_url)
        assert installation.manage("migrate", "--verbosity", "0").returncode == 0
        with installation.web_process(0, **changes) as server:
            assert told_version(server.port) == ""
            assert told_version(port) == VERSION
