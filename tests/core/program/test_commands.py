"""What texts tell people to type is what works where the program was started."""

from __future__ import annotations

import sys

import pytest

from core.program.commands import NoFolder, command, take_data_folder


@pytest.mark.parametrize(
    ("called", "words", "typed"),
    [
        (["manage.py", "serve"], "issue_key ME", "manage.py issue_key ME"),
        (["manage.py", "--data", "D", "serve"], "issue_key ME", "manage.py --data D issue_key ME"),
        (["/usr/bin/tickwire-server"], "issue_key ME", "tickwire-server issue-key ME"),
        (["/usr/bin/tickwire-server"], "run_engine", "tickwire-server engine"),
        (["/x/tickwire_server/__main__.py"], "migrate", "tickwire-server migrate"),
        (
            ["/usr/bin/tickwire-server", "serve", "--data=a b"],
            "migrate",
            "tickwire-server --data 'a b' migrate",
        ),
    ],
)
def test_a_command_is_typed_as_this_program_was(
    monkeypatch: pytest.MonkeyPatch, called: list[str], words: str, typed: str
) -> None:
    monkeypatch.setattr(sys, "argv", called)
    assert command(words).removeprefix(".venv/bin/python ").removeprefix("python ") == typed


def test_without_a_path_uvx_is_part_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["tickwire-server"])
    monkeypatch.setattr(sys, "prefix", "/home/ada/.cache/uv/archive-v0/Xy12")
    assert command("migrate") == "uvx tickwire-server migrate"


@pytest.mark.parametrize(
    ("words", "folder", "others"),
    [
        (["serve"], "", ["serve"]),
        (["--data", "D", "serve", "--port", "1"], "D", ["serve", "--port", "1"]),
        (["serve", "--port", "1", "--data=D"], "D", ["serve", "--port", "1"]),
    ],
)
def test_the_data_folder_stands_anywhere(words: list[str], folder: str, others: list[str]) -> None:
    assert take_data_folder(words) == (folder, others)


@pytest.mark.parametrize("words", [["--data"], ["serve", "--data="], ["--data", "A", "--data", "B"]])
def test_no_folder_or_two_are_refused(words: list[str]) -> None:
    with pytest.raises(NoFolder, match="takes one folder"):
        take_data_folder(words)
