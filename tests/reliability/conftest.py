"""The reliability gate starts its own PostgreSQL and Redis, in whichever mode the run is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import services
from tests.reliability.processes import Installation

Tell = Callable[[str], None]


@pytest.fixture
def tell(record_property: Callable[[str, object], None]) -> Tell:
    """Put a number into the report that ends the run."""

    def told(line: str) -> None:
        record_property("number", line)

    return told


def pytest_terminal_summary(terminalreporter: Any) -> None:
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.stats.get(kind, [])]
    lines = [
        f"{report.nodeid.partition('::')[2]}: {line}"
        for report in reports
        for name, line in getattr(report, "user_properties", [])
        if name == "number"
    ]
    if lines:
        terminalreporter.section("numbers")
        for line in lines:
            terminalreporter.line(line)


@pytest.fixture(scope="session")
def scaled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """PostgreSQL and Redis, migrated."""
    directory = tmp_path_factory.mktemp("scaled")
    with services.postgres(directory) as database, services.redis(directory) as redis:
        yield migrated(Installation(directory, database, redis))


@pytest.fixture
def embedded(tmp_path: Path) -> Installation:
    """A SQLite file and nothing else."""
    return migrated(Installation(tmp_path, f"sqlite:///{tmp_path / 'embedded.sqlite3'}"))


def migrated(installation: Installation) -> Installation:
    done = installation.manage("migrate", "--verbosity", "0")
    assert done.returncode == 0, done.stderr
    return installation


@pytest.fixture
def rows(request: pytest.FixtureRequest, django_db_blocker: Any) -> Iterator[None]:
    """Allow the models where a test names its own database."""
    with django_db_blocker.unblock():
        yield
