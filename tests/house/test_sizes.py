"""Small files and small functions, so that a reader finds a thing by guessing its place."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = (
    "config",
    "status",
    "news",
    "signals_feed",
    "market",
    "instruments",
    "accounts",
    "core",
    "serving",
    "demo",
    "pages",
    "analysis",
)
PLACES = (*ROOMS, "clients/python", "tests")
MOST_LINES, MOST_FUNCTION_LINES, MIDDLE_LINES = 400, 40, 150
VAGUE = {"utils", "helpers", "common", "misc", "base_utils"}

FILES = [path for place in PLACES for path in (ROOT / place).rglob("*.py") if "migrations" not in path.parts]


def lines_of(path: Path) -> int:
    return len(path.read_text().splitlines())


def functions(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def test_files_are_small() -> None:
    assert [path for path in FILES if lines_of(path) > MOST_LINES] == []


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


def test_the_middle_file_is_short() -> None:
    assert median(lines_of(path) for path in FILES if lines_of(path)) <= MIDDLE_LINES


def test_no_module_has_a_vague_name() -> None:
    assert [path for path in FILES if path.stem in VAGUE] == []
