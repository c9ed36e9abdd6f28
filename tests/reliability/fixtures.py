"""What the tests of reliability are given, in the gate and at night, and the scorecard that ends a run. A
plugin, because two folders share it. README.md in this folder says what belongs where."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.databases import prepared
from tests.programs import services
from tests.reliability.services.private_servers import PrivatePostgres
from tests.reliability.services.processes import ROOT, Installation

from . import scorecard

Tell = Callable[[str], None]


def plug_in(config: pytest.Config) -> None:
    """Once, whichever of the two folders is met first."""
    if not config.pluginmanager.has_plugin("reliability"):
        config.pluginmanager.register(sys.modules[__name__], "reliability")


@pytest.fixture
def tell(record_property: Callable[[str, object], None]) -> Tell:
    """Put a number into the scorecard that ends the run."""

    def told(line: str) -> None:
        record_property("number", line)

    return told


@pytest.fixture
def seed(record_property: Callable[[str, object], None]) -> int:
    """Of everything that is random in a test: `SEED=7 make reliability` takes another."""
    chosen = int(os.environ.get("SEED", "20261121"))
    record_property("seed", chosen)
    return chosen


def pytest_configure() -> None:
    path = os.environ.get("SCORECARD")
    if path and (fault := scorecard.fault_of(Path(path))):
        raise pytest.UsageError(fault)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`@pytest.mark.row("9", "closed within 10 s")`: which fault of the gate, and the target."""
    for item in items:
        # The nearest is the test's own; that of its file stands for those without.
        if mark := item.get_closest_marker("row"):
            item.user_properties += zip(("row", "target"), mark.args, strict=True)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    stats = terminalreporter.stats
    reports = [*stats.get("passed", []), *stats.get("failed", []), *stats.get("error", [])]
    # A file that cannot be collected has a report too, and no row.
    ours = [
        report for report in reports if "reliability/" in report.nodeid and hasattr(report, "user_properties")
    ]
    # The scorecard's own tests show nothing of the service.
    ours = [report for report in ours if "test_scorecard" not in report.nodeid]
    for place in scorecard.COMMANDS:
        lines = [scorecard.line_of(each) for each in ours if scorecard.place_of(each.nodeid) == place]
        if not lines:
            continue
        terminalreporter.section(f"scorecard of {scorecard.COMMANDS[place]}")
        results = scorecard.text(lines)
        for line in results.splitlines():
            terminalreporter.line(line)
        if path := os.environ.get("SCORECARD"):
            head = scorecard.head(datetime.now(UTC), scorecard.state_of(ROOT), len(lines), place)
            scorecard.write(Path(path), place, f"{head}\n\n{results}")


@pytest.fixture(scope="module")
def prompt() -> Iterator[None]:
    """Servers have the deadlines of the product, because these are what a file is about."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DEADLINES_TIMES", "1")
        yield


@pytest.fixture(scope="session")
def scaled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """PostgreSQL and Redis, migrated."""
    directory = tmp_path_factory.mktemp("scaled")
    database = PrivatePostgres(directory)
    with database.running(), services.redis(directory) as redis:
        yield Installation(directory, database.url, redis)


@pytest.fixture
def embedded(tmp_path: Path) -> Installation:
    return sqlite_in(tmp_path)


@pytest.fixture(params=["embedded", "scaled"])
def either(request: pytest.FixtureRequest) -> Installation:
    found: Installation = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module")
def embedded_for_module(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    return sqlite_in(tmp_path_factory.mktemp("embedded"))


def sqlite_in(directory: Path) -> Installation:
    """A SQLite file and nothing else, migrated."""
    path = directory / "embedded.sqlite3"
    prepared.copy_sqlite(path)
    return Installation(directory, f"sqlite:///{path}")


@pytest.fixture(scope="module")
def rows(django_db_blocker: Any) -> Iterator[None]:
    """Allow the models: each test names its own database."""
    with django_db_blocker.unblock():
        yield
