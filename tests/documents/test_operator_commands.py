"""Commands, targets and arguments that the pages for operators name are there."""

from __future__ import annotations

import re

import pytest
from django.core.management import CommandError, get_commands, load_command_class

from .commands import PAGES, ROOT, commands


def own_words(command: str) -> list[str]:
    """What stands behind the name of our own program, the sub-command as the pages write it."""
    program, *words = command.removeprefix("do ").split()
    if program.rpartition("/")[2] not in ("tickwire-server", "tickwire-admin", "manage.py") or not words:
        return []
    return [words[0].replace("_", "-"), *words[1:]]


def test_arguments_and_targets_that_are_named_are_taken() -> None:
    named = [command for page in PAGES for command in commands(page)]
    assert [fault for command in named if (fault := fault_of(command))] == []


@pytest.mark.parametrize(
    "wrong",
    [
        "tickwire-server serve --wrokers 4",
        "tickwire-server serv",
        "make no-such-target",
        "tickwire-server restore",
        "tickwire-server move sqlite:////srv/tickwire/tickwire.sqlite3",
        "tickwire-admin restore --replace",
    ],
)
def test_wrong_arguments_are_seen(wrong: str) -> None:
    assert fault_of(wrong)


def fault_of(command: str) -> str:
    program, *rest = command.split()
    if program == "make" and not re.search(rf"^{rest[0]}:", (ROOT / "Makefile").read_text(), re.MULTILINE):
        return f"no target: {command}"
    words = own_words(command)
    # Names by themselves: the text says what follows, or any command is meant.
    if not words or words[0] in ("help", "NAME", "--version") or words == ["import-ticks"]:
        return ""
    name = {"engine": "run_engine"}.get(words[0], words[0].replace("-", "_"))
    if name not in get_commands():
        return f"no command: {command}"
    parser = load_command_class(get_commands()[name], name).create_parser("tickwire-server", name)
    try:
        parser.parse_args(words[1:])
    except CommandError as fault:
        return f"{command}: {fault}"
    return ""
