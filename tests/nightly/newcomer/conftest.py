"""The seconds that a newcomer waits stand at the end of the run; none of them is asserted."""

from __future__ import annotations

from typing import Any


def pytest_terminal_summary(terminalreporter: Any) -> None:
    lines = [
        f"{seconds:8.1f} s  {step.removeprefix('seconds ')}"
        for report in terminalreporter.stats.get("passed", [])
        for step, seconds in getattr(report, "user_properties", ())
        if step.startswith("seconds ")
    ]
    if lines:
        terminalreporter.section("a newcomer waits")
        for line in lines:
            terminalreporter.line(line)
