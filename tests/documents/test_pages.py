"""Pages name files and commands that are there, the order that lint holds to, and what an operation costs
alike."""

from __future__ import annotations

import re

import pytest
from django.core.management import CommandError, get_commands, load_command_class

from tools.lint.modules import PARTS, ROOMS, ROOT, STEPS

from .commands import PAGES, commands

PAGE = (ROOT / "docs/architecture.md").read_text()
NAMES = sorted({"manage.py"} ^ set(re.findall(r"(?<![.\w/])[\w/]*\w\.py\b|(?<![.\w/])\w+/[\w/]*/", PAGE)))
PLACES = (*ROOMS, "clients", "docs", "templates", "tests", "tools")
FILES = {path.relative_to(ROOT).as_posix() for place in PLACES for path in (ROOT / place).rglob("*.*")}


@pytest.mark.parametrize("name", NAMES)
def test_every_file_in_it_is_there(name: str) -> None:
    end = "" if name.endswith("/") else "$"
    assert any(re.search(rf"/{re.escape(name)}{end}", f"/{file}") for file in FILES)


def test_it_has_the_rooms_in_order() -> None:
    assert " → ".join(", ".join(step) for step in STEPS) in PAGE
    assert re.findall(r"^\| `(\w+)/` \|", PAGE, re.MULTILINE) == list(ROOMS)


@pytest.mark.parametrize("room", PARTS)
def test_it_has_the_parts_of_a_room_in_order(room: str) -> None:
    order = " → ".join(", ".join(f"`{part}`" for part in step) for step in PARTS[room])
    assert order in " ".join(PAGE.split())


SIZING = (ROOT / "docs/operate/sizing.md").read_text()
SCALE = (ROOT / "docs/operate/scale.md").read_text()


@pytest.mark.parametrize(
    ("sized", "scaled"),
    [
        ("an open stream, with a ping every 10 seconds", "an open stream"),
        ("a stream that begins", "a stream that begins · ends"),
        ("a tick, in each web process whose clients want it", "a tick that clients of the process want"),
        ("a message of a stream, sent alone", "a message of a stream"),
        ("a tick that no client of the process wants", "a tick that no client of the process wants"),
    ],
)
def test_both_pages_name_the_same_cost(sized: str, scaled: str) -> None:
    assert first_number(SIZING, sized) == first_number(SCALE, scaled)


def first_number(page: str, operation: str) -> str:
    found = re.search(rf"^\| {re.escape(operation)} \| ([\d.]+)", page, re.M)
    assert found, operation
    return found[1]


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
