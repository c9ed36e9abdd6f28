"""Every command of ours is in the list that `tickwire-server help` prints without importing any. Texts name
commands as they can be typed."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from django.core.management import get_commands

from config.command_line.help import COMMANDS
from tests.house.modules import ROOMS, ROOT, Module, listed, modules


def test_help_lists_every_command_of_ours() -> None:
    files = [path for room in ROOMS for path in (ROOT / room).glob("management/commands/*.py")]
    missing = sorted({path.stem for path in files if path.stem != "__init__"} - COMMANDS)
    assert not missing, listed(missing, "Give each a line in config/command_line/help.py:")


def test_help_lists_nothing_that_is_not_there() -> None:
    absent = sorted(COMMANDS - set(get_commands()))
    assert not absent, listed(absent, "config/command_line/help.py lists what is no command:")


def texts(module: Module) -> Iterator[ast.Constant]:
    """All but docstrings, which nobody reads who types commands."""
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(module.tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node


def test_what_to_type_is_said_as_the_program_was_started() -> None:
    # `command` is what the others go through.
    own = ("core.program",)
    found = [
        f"{name}:{node.lineno}"
        for name, module in modules().items()
        if not name.startswith(own)
        for node in texts(module)
        if "manage.py " in str(node.value)
    ]
    assert not found, listed(
        found, "Installed there is no manage.py: let core.program.commands.command say it:"
    )
