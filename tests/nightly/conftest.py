"""What a test of this level told is a figure of docs/nightly.md."""

from __future__ import annotations

import os

import pytest

from .figures import note


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if "PYTEST_XDIST_WORKER" in os.environ:
        return
    told = [str(value) for name, value in report.user_properties if name == "number"]
    if report.when == "call" and (told or report.failed):
        target = "".join(str(value) for name, value in report.user_properties if name == "target")
        name = report.nodeid.rpartition("::")[2].removeprefix("test_").replace("_", " ")
        note(name, target, "; ".join(told), held=report.passed)
