"""What the product reads of the environment stands in a table, of which docs/operate/settings.md is made."""

from __future__ import annotations

import ast
import re
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from config.environment.variables import VARIABLES
from config.management.commands import settings_table
from config.management.commands.settings_table import env_example, markdown
from tools.lint.modules import ROOMS, ROOT, texts
from tools.lint.rules import reads_of_environment

READS = {"text", "whole", "number", "switch", "words", "parsed"}
CALLS = re.compile(r"\benv\.(\w+)\(\s*(?:[\"'](\w+)[\"'])?")


def test_each_variable_that_is_read_stands_in_the_table_and_the_reverse() -> None:
    calls = {call for text in texts(*ROOMS).values() for call in CALLS.findall(text)}
    assert {name for kind, name in calls if kind in READS} <= VARIABLES.keys() <= {name for _, name in calls}


def test_the_probe_reads_nothing_else_than_variables_of_the_table() -> None:
    probe = (ROOT / "deploy/ready.py").read_text()
    names = re.findall(r'\benviron\.get\("(\w+)"', probe)
    assert len(names) == len(list(reads_of_environment(ast.parse(probe)))) > 0
    assert set(names) <= VARIABLES.keys()


def test_defaults_are_allowed() -> None:
    for each in VARIABLES.values():
        if isinstance(each.default, int | float) or (
            each.default is not None and (each.among or each.begins)
        ):
            assert each.value_of(f"{each.default:d}" if each.kind == "switch" else str(each.default)) == (
                each.default
            ), each.name


def test_the_page_and_the_example_of_an_env_file_are_made_of_the_table() -> None:
    page = (ROOT / "docs/operate/settings.md").read_text()
    assert page == markdown()
    assert page.count("\n| `") == len(VARIABLES)
    lines = env_example().splitlines()
    assert all(any(line.startswith(f"#{name}=") for line in lines) for name in VARIABLES)


def test_command_prints_the_page_and_writes_it_in_a_checkout_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = StringIO()
    call_command("settings_table", stdout=printed)
    assert printed.getvalue() == markdown()
    page = tmp_path / "settings.md"
    monkeypatch.setattr(settings_table, "PAGE", page)
    with pytest.raises(CommandError, match="in a checkout only"):
        call_command("settings_table", write=True)
    page.touch()
    call_command("settings_table", write=True)
    assert page.read_text() == markdown()
