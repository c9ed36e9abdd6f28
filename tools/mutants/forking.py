"""A plugin of pytest: instead of running the tests that it collected, it forks a child for each fault, which
plants it in the functions that are there and runs the tests that the plan names for it until one fails."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
import time
from contextlib import closing, suppress
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import Any

import pytest
from django.db import connection, connections
from django.urls import get_resolver

from .swapping import NeedsFreshProcess, functions_by_file, plant
from .tree import ROOT

LOOK_S = 0.05


class Forks:
    def __init__(self, plan: list[dict[str, Any]], results: Path) -> None:
        self._plan, self._results = plan, results
        self._items: dict[str, pytest.Item] = {}
        self._failed: list[str] = []
        self._clean: dict[str, bool] = {}
        self._database: tuple[Path, bytes] | None = None
        self._functions: dict[str, list[FunctionType]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.append(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._items = {item.nodeid: item for item in session.items}
        self._warm(session.items)
        self._functions = functions_by_file()
        for fault in self._plan:
            outcome = self._try(fault)
            with self._results.open("a") as results:
                results.write(json.dumps({"id": fault["id"]} | outcome) + "\n")
        return True

    def _warm(self, items: list[pytest.Item]) -> None:
        """Once and not in each child: the database, which is migrated first, and what is imported late."""
        get_resolver().url_patterns  # noqa: B018
        using = [item for item in items if item.get_closest_marker("django_db")]
        if using:
            # Fixtures alone: threads that a test starts would be missing in the children.
            item = min(using, key=lambda each: len(getattr(each, "fixturenames", ())))
            state = item.session._setupstate
            state.setup(item)
            # Of all that was set up the session's part stays.
            state.teardown_exact(SimpleNamespace(listchain=lambda: [item.session]))  # type: ignore[arg-type]
            connections.close_all()
            name = Path(str(connection.settings_dict["NAME"]))
            if name.is_file():
                with closing(sqlite3.connect(name)) as database:
                    self._database = name, database.serialize()

    def _restore(self) -> None:
        """A child that was killed leaves rows behind."""
        if self._database is not None:
            name, data = self._database
            for ending in ("-wal", "-shm"):
                Path(f"{name}{ending}").unlink(missing_ok=True)
            name.write_bytes(data)

    def _try(self, fault: dict[str, Any]) -> dict[str, str]:
        tests = [
            test for test in fault["tests"] if self._clean.get(test) is not False and test in self._items
        ]
        while True:
            outcome = self._in_a_child(tests, fault["limit_s"], fault)
            if outcome["outcome"] == "hung" and not self._ends_without(tests, fault["limit_s"]):
                return {"outcome": "unclear"}
            failed = outcome.get("by", "")
            if outcome["outcome"] != "noticed" or self._passes_without(failed, tests, fault["limit_s"]):
                return outcome
            tests = [test for test in tests if test != failed]
            if not tests:
                return {"outcome": "unnoticed"}

    def _ends_without(self, tests: list[str], limit_s: float) -> bool:
        """Whether the fault is what hung, and neither a fork nor the machine."""
        return self._in_a_child(tests, limit_s, None)["outcome"] != "hung"

    def _passes_without(self, test: str, tests: list[str], limit_s: float) -> bool:
        """Whether the fault is what it noticed: it passes after the same tests of its file."""
        if test not in self._clean:
            file = test.partition("::")[0]
            before = tests[: tests.index(test) + 1]
            same_file = [each for each in before if each.startswith(file)]
            self._clean[test] = self._in_a_child(same_file, limit_s, None)["outcome"] == "unnoticed"
        return self._clean[test]

    def _in_a_child(self, tests: list[str], limit_s: float, fault: dict[str, Any] | None) -> dict[str, str]:
        self._restore()
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            self._be_child(writing, tests, fault)
        os.close(writing)
        until_s = time.monotonic() + limit_s
        while not os.waitpid(child, os.WNOHANG)[0]:
            if time.monotonic() > until_s:
                os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
                os.close(reading)
                return {"outcome": "hung"}
            time.sleep(LOOK_S)
        with os.fdopen(reading) as answer:
            text = answer.read()
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        found: dict[str, str] = json.loads(text) if text else {"outcome": "died"}
        return found

    def _be_child(self, answer: int, tests: list[str], fault: dict[str, Any] | None) -> None:
        """It ends here, whatever comes."""
        outcome = {"outcome": "unnoticed"}
        try:
            os.setsid()
            if fault is not None:
                source = ROOT / fault["path"]
                plant(str(source), source.read_text(), fault["source"], self._functions[str(source)])
            failed = self._run([self._items[test] for test in tests])
            if failed:
                outcome = {"outcome": "noticed", "by": failed}
        except NeedsFreshProcess:
            outcome = {"outcome": "fresh"}
        except BaseException as error:  # noqa: BLE001 - what ends the tests notices the fault
            outcome = {"outcome": "died", "by": repr(error)}
        finally:
            os.write(answer, json.dumps(outcome).encode())
            sys.stdout.flush()
            os._exit(0)

    def _run(self, items: list[pytest.Item]) -> str:
        self._failed.clear()
        session = items[0].session
        try:
            for item, following in zip(items, [*items[1:], None], strict=True):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if self._failed:
                    break
        finally:
            session._setupstate.teardown_exact(None)
        return self._failed[0] if self._failed else ""


def pytest_addoption(parser: pytest.Parser) -> None:
    for name in ("--mutants-plan", "--mutants-results"):
        parser.addoption(name, type=Path)


def pytest_configure(config: pytest.Config) -> None:
    plan, results = config.getoption("--mutants-plan"), config.getoption("--mutants-results")
    config.pluginmanager.register(Forks(json.loads(plan.read_text()), results))
