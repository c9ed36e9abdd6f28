"""Files about one thing and folders that are taken in at a glance, so that a reader guesses the place."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest

from tests.house.modules import ROOMS, ROOT, listed

PLACES = (*ROOMS, "clients/python", "tests", "tools")
MOST_LINES, MIDDLE_LINES, MOST_FUNCTION_LINES, MOST_FILES = 400, 150, 40, 15
NOT_COUNTED = ("__init__.py", "conftest.py")
NOT_OURS = {"migrations", "__pycache__", "node_modules", "target"}
FILES = [path for place in PLACES for path in (ROOT / place).rglob("*.py") if "migrations" not in path.parts]


def functions(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def test_no_file_has_over_400_lines() -> None:
    long = [str(path.relative_to(ROOT)) for path in FILES if len(path.read_text().splitlines()) > MOST_LINES]
    assert not long, listed(long, f"Divide these by what they are about; {MOST_LINES} lines are the most:")


def test_the_middle_file_has_at_most_150() -> None:
    middle = median(length for path in FILES if (length := len(path.read_text().splitlines())))
    assert middle <= MIDDLE_LINES, f"half of the files have over {middle} lines: divide some of the longest"


# Templates, scripts and documents as well; only migrations may be as many as they have to be.
def test_no_folder_has_over_15_files() -> None:
    paths = [path for place in (*PLACES, "docs", "static", "templates") for path in (ROOT / place).rglob("*")]
    counted = [
        path.relative_to(ROOT)
        for path in paths
        if path.is_file() and path.name not in NOT_COUNTED and NOT_OURS.isdisjoint(path.parts)
    ]
    assert Path("templates/base.html") in counted
    found = Counter(str(path.parent) for path in counted)
    full = [f"{folder}: {count}" for folder, count in found.items() if count > MOST_FILES]
    assert not full, listed(full, f"Give these parts of their own; {MOST_FILES} files are the most:")


@pytest.mark.parametrize("place", PLACES)
def test_functions_are_small(place: str) -> None:
    long = [
        f"{path.relative_to(ROOT)}: {name} has {length}"
        for path in FILES
        if path.is_relative_to(ROOT / place)
        for name, length in functions(path)
        if length > MOST_FUNCTION_LINES
    ]
    assert not long, listed(long, f"Divide these functions; {MOST_FUNCTION_LINES} lines are the most:")
