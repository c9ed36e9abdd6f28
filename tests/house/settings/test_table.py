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
# It runs by itself, without the rooms.
PROBE = ROOT / "deploy/ready.py"
WAYS_IN = {"environ", "environb", "getenv", "getenvb"}


def sources() -> Iterator[tuple[Path, ast.AST]]:
    for place in (*ROOMS, "tickwire_server", "tools", "deploy", "manage.py"):
        path = ROOT / place
        for each in [path] if path.is_file() else sorted(path.rglob("*.py")):
            yield each, ast.parse(each.read_text())


def reads_past_the_table(tree: ast.AST) -> Iterator[int]:
    """Setting a variable, or handing all of them on to a process with some changed, reads none."""
    parents = {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}
    for node in ast.walk(tree):
        is_said = isinstance(node, ast.Constant) and node.value in WAYS_IN
        is_renamed = isinstance(node, ast.alias) and node.name in WAYS_IN and node.asname is not None
        name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
        if is_said or is_renamed or (name in WAYS_IN and not is_set_or_handed_on(node, parents)):
            yield getattr(node, "lineno", 0)


def is_set_or_handed_on(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    match parents[node], parents.get(parents[node]):
        case ast.Attribute(attr="setdefault"), ast.Call() as call:
            return isinstance(parents[call], ast.Expr)
        case ast.Subscript(ctx=ast.Store() | ast.Del()), _:
            return True
        case ast.BinOp(op=ast.BitOr()), ast.keyword(arg="env"):
            return True
        case ast.BinOp(op=ast.BitOr()) as whole, ast.Call(func=ast.Attribute(attr="execve"), args=[*_, last]):
            return whole is last
    return False


def names_read_by_the_probe(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Attribute(attr="environ"), attr="get"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield name


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
        if path not in (THE_DOOR, PROBE)
        for line in reads_past_the_table(tree)
    ]
    assert not found, listed(
        found, "Put the variable into config/environment/variables and config/settings.py:"
    )


def test_the_probe_reads_nothing_else_than_variables_of_the_table() -> None:
    tree = ast.parse(PROBE.read_text())
    names = list(names_read_by_the_probe(tree))
    assert len(names) == len(list(reads_past_the_table(tree))) > 0
    assert set(names) <= VARIABLES.keys()


@pytest.mark.parametrize(
    "line",
    [
        "os.environ['PORT']",
        "os.environ.get('PORT')",
        "getenv('PORT')",
        "os.environb[b'PORT']",
        "'PORT' in environ",
        "(os.environ | {})['PORT']",
        "given = os.environ | {'A': 'b'}",
        "run((os.environ | {})['PORT'])",
        "run(env=(os.environ | {})['PORT'])",
        "os.execve((os.environ | {})['SHELL'], [], {})",
        "vars(os)['environ']['PORT']",
        "getattr(os, 'getenv')('PORT')",
        "from os import environ as e",
        "port = os.environ.setdefault('PORT', '1')",
        "print(os.environ.setdefault('PORT', '1'))",
    ],
)
def test_reading_past_the_table_is_seen(line: str) -> None:
    assert list(reads_past_the_table(ast.parse(line)))


@pytest.mark.parametrize(
    "line",
    [
        "os.environ.setdefault('A', 'b')",
        "os.environ['A'] = 'b'",
        "del os.environ['A']",
        "run(env=os.environ | {'A': 'b'})",
        "os.execve(program, words, os.environ | {'A': 'b'})",
    ],
)
def test_setting_and_handing_on_are_not_reading(line: str) -> None:
    assert not list(reads_past_the_table(ast.parse(line)))


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
    with pytest.raises(CommandError, match="in a checkout only"):
        call_command("settings_table", write=True)
    page.touch()
    call_command("settings_table", write=True)
    assert page.read_text() == markdown()


def test_each_meaning_is_a_sentence() -> None:
    wrong = [each.name for each in VARIABLES.values() if not each.meaning.endswith(".")]
    assert not wrong, listed(wrong, "Say these in a sentence:")
