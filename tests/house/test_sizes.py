"""Files about one thing and folders that are taken in at a glance, so that a reader guesses the place."""

from __future__ import annotations

import ast
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest

from tests.house.modules import ROOMS, ROOT

PLACES = (*ROOMS, "clients/python", "tests", "tools")
MOST_LINES, MIDDLE_LINES, MOST_FUNCTION_LINES, MOST_FILES = 400, 150, 40, 15
NOT_COUNTED = ("__init__.py", "conftest.py")
FILES = [path for place in PLACES for path in (ROOT / place).rglob("*.py") if "migrations" not in path.parts]


def functions(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def test_no_file_has_over_400_lines() -> None:
    assert [path for path in FILES if len(path.read_text().splitlines()) > MOST_LINES] == []


def test_the_middle_file_has_at_most_150() -> None:
    assert median(length for path in FILES if (length := len(path.read_text().splitlines()))) <= MIDDLE_LINES


# Templates, scripts and documents as well; only migrations may be as many as they have to be.
def test_no_folder_has_over_15_files() -> None:
    listed = subprocess.check_output(("git", "-C", str(ROOT), "ls-files", "-z"), text=True)
    tracked = [Path(name) for name in listed.split("\0")[:-1]]
    counted = [path for path in tracked if path.name not in NOT_COUNTED and "migrations" not in path.parts]
    assert Path("templates/base.html") in counted
    found = Counter(str(path.parent) for path in counted)
    assert {folder: count for folder, count in found.items() if count > MOST_FILES} == {}


@pytest.mark.parametrize("place", PLACES)
def test_functions_are_small(place: str) -> None:
    long = [
        f"{path}: {name}"
        for path in FILES
        if path.is_relative_to(ROOT / place)
        for name, length in functions(path)
        if length > MOST_FUNCTION_LINES
    ]
    assert long == []
