"""What is in the wheel: all that the product needs, in one package."""

from __future__ import annotations

import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from core.program.version import VERSION
from tests.programs.packages import ROOT
from tools.lint.modules import ROOMS

PLACES = (*ROOMS, "clients", "docs", "static", "templates")
MADE = {"__pycache__", "node_modules", "dist"}


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as opened:
        return set(opened.namelist())


def test_every_file_of_every_room_is_in_its_one_package(names: set[str]) -> None:
    files = {
        path.relative_to(ROOT).as_posix()
        for place in PLACES
        for path in (ROOT / place).rglob("*")
        if path.is_file() and not MADE & {*path.relative_to(ROOT).parts}
    }
    facts = f"tickwire_server-{VERSION}.dist-info"
    assert {name.partition("/")[0] for name in names} == {"tickwire_server", facts}
    inside = {name.removeprefix("tickwire_server/") for name in names}
    own = {"__init__.py", "__main__.py", "CHANGELOG.md", "LICENSE", "NOTICE"}
    assert {name for name in inside if ".dist-info/" not in name} == files | own


def test_its_facts_are_those_of_the_project(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        folder = f"tickwire_server-{VERSION}.dist-info"
        facts = Parser().parsestr(opened.read(f"{folder}/METADATA").decode())
        commands = opened.read(f"{folder}/entry_points.txt").decode()
    named = (facts["Name"], facts["Version"], facts["License-Expression"])
    assert named == ("tickwire-server", VERSION, "MIT")
    assert facts.get_all("License-File") == ["LICENSE", "NOTICE"]
    assert "tickwire-server = tickwire_server:serve_by_default" in commands
