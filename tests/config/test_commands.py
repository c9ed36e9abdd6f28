"""Every command of ours is in the list that `tickwire-server help` prints without importing any. Texts name
commands as they can be typed."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
from django.core.management import get_commands

from config.command_line.words import COMMANDS
from tools.lint.modules import ROOMS, ROOT, texts


def test_help_lists_every_command_of_ours_and_no_other() -> None:
    ours = {path.stem for room in ROOMS for path in (ROOT / room).glob("management/commands/*.py")}
    assert ours - {"__init__"} <= COMMANDS <= set(get_commands())


def strings(tree: ast.AST) -> Iterator[str]:
    """All but docstrings, which nobody reads who types commands."""
    bare = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in bare:
            yield node.value


@pytest.mark.parametrize("room", ROOMS)
def test_what_to_type_is_said_as_the_program_was_started(room: str) -> None:
    """An installation has no manage.py: `command` in core/program, through which the rest goes, says it."""
    named = [
        path
        for path, text in texts(room).items()
        if "manage.py " in text and not path.startswith("core/program/")
        if any("manage.py " in string for string in strings(ast.parse(text)))
    ]
    assert named == []
