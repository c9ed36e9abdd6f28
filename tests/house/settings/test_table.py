"""What the product reads of the environment stands in a table, of which docs/operate/settings.md is made."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from config.environment.page import env_example, markdown
from config.environment.variables import GROUPS, VARIABLES
from config.management.commands import settings_table
from tests.house.modules import ROOMS, ROOT, listed

READS = {"text", "whole", "number", "switch", "words", "parsed"}
THE_DOOR = ROOT / "config/environment/__init__.py"


def sources() -> Iterator[tuple[Path, ast.AST]]:
    for place in (*ROOMS, "tools", "manage.py"):
        path = ROOT / place
        for each in [path] if path.is_file() else sorted(path.rglob("*.py")):
            yield each, ast.parse(each.read_text())


def reads_past_the_table(tree: ast.AST) -> Iterator[int]:
    """Setting a variable, or handing all of them on to a process with some changed, reads none."""
    parents = {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}
    for node in ast.walk(tree):
        name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
        if name == "getenv":
            yield getattr(node, "lineno", 0)
        if name == "environ":
            parent = parents[node]
            is_set = isinstance(parent, ast.Attribute) and parent.attr == "setdefault"
            is_handed_on = isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.BitOr)
            if not (is_set or is_handed_on):
                yield getattr(node, "lineno", 0)


def calls_of_env() -> Iterator[tuple[str, str | None, str]]:
    for path, tree in sources():
        for node in ast.walk(tree):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="env"), attr=kind), args=[first, *_]):
                    name = str(first.value) if isinstance(first, ast.Constant) else None
                    yield kind, name, f"{path.relative_to(ROOT)}:{node.lineno}"


def test_nothing_reads_the_environment_past_the_table() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path, tree in sources()
        if path != THE_DOOR
        for line in reads_past_the_table(tree)
    ]
    assert not found, listed(
        found, "Put the variable into config/environment/variables and config/settings.py:"
    )


def test_reading_past_the_table_is_seen() -> None:
    for line in ("os.environ['PORT']", "os.environ.get('PORT')", "getenv('PORT')", "'PORT' in environ"):
        assert list(reads_past_the_table(ast.parse(line))), line
    for line in ("os.environ.setdefault('A', 'b')", "run(env=os.environ | {'A': 'b'})"):
        assert not list(reads_past_the_table(ast.parse(line))), line


def test_each_variable_that_is_read_stands_in_the_table() -> None:
    missing = [
        f"{where}: {name or 'a name that is made'}"
        for kind, name, where in calls_of_env()
        if kind in READS and name not in VARIABLES
    ]
    assert not missing, listed(missing, "Put these into config/environment/variables:")


def test_each_variable_of_the_table_is_read() -> None:
    read = {name for _, name, _ in calls_of_env()}
    assert len(read) > 60
    unread = sorted(VARIABLES.keys() - read)
    assert not unread, listed(unread, "Nothing reads these:")


def test_no_variable_stands_in_the_table_twice() -> None:
    assert len(VARIABLES) == sum(len(group.variables) for group in GROUPS)


def test_defaults_are_allowed() -> None:
    for each in VARIABLES.values():
        if isinstance(each.default, int | float) or (
            each.default is not None and (each.among or each.begins)
        ):
            assert each.value_of(f"{each.default:d}" if each.kind == "switch" else str(each.default)) == (
                each.default
            ), each.name


def test_the_page_is_made_of_the_table() -> None:
    page = (ROOT / "docs/operate/settings.md").read_text()
    assert page == markdown(), "renew it: .venv/bin/python manage.py settings_table --write"
    assert page.count("\n| `") == len(VARIABLES)


def test_the_example_of_an_env_file_names_each_variable() -> None:
    lines = env_example().splitlines()
    assert [line.partition("=")[0] for line in lines if line.startswith("#") and "=" in line[:40]][:2] == [
        "#PRODUCTION",
        "#DEMO",
    ]
    assert all(any(line.startswith(f"#{name}=") for line in lines) for name in VARIABLES)


def test_command_prints_what_the_page_has() -> None:
    printed = StringIO()
    call_command("settings_table", stdout=printed)
    assert printed.getvalue() == markdown()


def test_command_writes_the_page_in_a_checkout_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "settings.md"
    monkeypatch.setattr(settings_table, "PAGE", page)
    with pytest.raises(CommandError, match="in a checkout alone"):
        call_command("settings_table", write=True)
    page.touch()
    call_command("settings_table", write=True)
    assert page.read_text() == markdown()


def test_each_meaning_is_a_sentence() -> None:
    wrong = [each.name for each in VARIABLES.values() if not each.meaning.endswith(".")]
    assert not wrong, listed(wrong, "Say these in a sentence:")
