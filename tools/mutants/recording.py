"""A plugin of pytest that keeps which lines of the product each test executes."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import coverage
import pytest

from .seen import SEEN, SEEN_ON_SERVICES, Seen, Test
from .tree import ROOMS, ROOT

LEVELS = {"browser": "browser", "reliability": "reliability"}


def file_of(test: str) -> str:
    return test.partition("::")[0]


def level_of(item: pytest.Item) -> str:
    if item.config.getoption("--mutants-seen") == SEEN_ON_SERVICES:
        return "services"
    folder = Path(file_of(item.nodeid)).parts[1]
    return LEVELS.get(folder) or ("served" if item.get_closest_marker("served") else "fast")


class Recording:
    def __init__(self, data: Path, seen: Path, *, with_served: bool) -> None:
        self._data, self._seen, self._with_served = data, seen, with_served
        self._coverage = coverage.Coverage(
            data_file=str(data), include=[f"{ROOT}/{room}/*" for room in ROOMS], config_file=False
        )
        self._seconds: dict[str, float] = defaultdict(float)
        self._failed: set[str] = set()
        self._items: list[pytest.Item] = []
        self._in_part: set[str] = set()
        self._now = ""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Servers are slow: their tests are recorded only where they are asked for."""
        if not self._with_served:
            self._in_part = {file_of(item.nodeid) for item in items if level_of(item) == "served"}
            items[:] = [item for item in items if level_of(item) != "served"]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        self._items = list(session.items)
        self._coverage.start()
        try:
            return (yield)
        finally:
            self._coverage.stop()
            self._coverage.save()
            self._keep()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._now = item.nodeid
        self._coverage.switch_context(self._now)
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Generator[None, object, object]:
        """What tests share is set up by the first of them, and reached by all."""
        if fixturedef.scope == "function":
            return (yield)
        self._coverage.switch_context(file_of(self._now))
        try:
            return (yield)
        finally:
            self._coverage.switch_context(self._now)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += report.duration
        if not report.passed:
            self._failed.add(report.nodeid)

    def _keep(self) -> None:
        lines = defaultdict(list)
        for test, path, bits in read(self._data):
            lines[file_of(test)].append((test, path, bits))
        for child in self._data.parent.glob("child.*"):
            for test, path, bits in read(child):
                # A server outlives the test that started it.
                file = file_of(test)
                lines[file].append((file, path, bits))
        tests = defaultdict(list)
        for place, item in enumerate(self._items):
            test = item.nodeid
            file = file_of(test)
            passed = test in self._seconds and test not in self._failed
            tests[file].append(Test(test, file, place, level_of(item), self._seconds[test], passed))
        seen = Seen(self._seen)
        for file, found in tests.items():
            seen.put(file, found, lines[file], is_whole=file not in self._in_part)
        self._data.unlink()


def read(data: Path) -> Iterator[tuple[str, str, bytes]]:
    """The test, the module, and its lines as bits."""
    with suppress(sqlite3.DatabaseError), sqlite3.connect(data) as database:
        rows = database.execute(
            "SELECT context.context, file.path, numbits FROM line_bits "
            "JOIN context ON context.id = context_id JOIN file ON file.id = file_id"
        )
        for test, path, bits in rows:
            yield test, str(Path(path).relative_to(ROOT)), bits


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--mutants-data", type=Path)
    parser.addoption("--mutants-seen", type=Path, default=SEEN)
    parser.addoption("--mutants-served", action="store_true")


def pytest_configure(config: pytest.Config) -> None:
    data, seen = config.getoption("--mutants-data"), config.getoption("--mutants-seen")
    recording = Recording(data, seen, with_served=config.getoption("--mutants-served"))
    config.pluginmanager.register(recording)
