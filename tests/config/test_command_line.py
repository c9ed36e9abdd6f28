"""`tickwire-server` and `manage.py`: help without waiting, and a sentence for whatever is mistyped."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from config.command_line.execution import execute
from config.command_line.words import Reading, read
from core.version import VERSION
from tests.patience import START_PATIENCE_S
from tests.programs.commands import manage
from tests.programs.running import environment

pytestmark = pytest.mark.served


@pytest.fixture(autouse=True)
def _typed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/bin/tickwire-server"])


@pytest.mark.parametrize("word", ["help", "--help", "-h"])
def test_help_has_a_line_for_each_command_and_the_version_is_told(word: str) -> None:
    said = read([word], "serve").answer
    assert "\nRunning it\n  serve " in said
    assert "\n  issue-key         Print a new API key" in said
    assert max(map(len, said.splitlines())) <= 110
    assert read([], "help").answer == said
    assert read(["--port", "1"], "serve").words == ["serve", "--port", "1"]
    assert {read([each], "serve").answer for each in ("--version", "version")} == {
        f"tickwire-server {VERSION}"
    }


@pytest.mark.parametrize(
    ("typed", "reading"),
    [
        (["issue-key", "me"], Reading(["issue_key", "me"])),
        (["engine"], Reading(["run_engine"])),
        (["help", "issue-key"], Reading(["help", "issue_key"])),
        (["migrate", "--data", "/srv"], Reading(["migrate"], "/srv")),
        (["--data=/srv", "migrate"], Reading(["migrate"], "/srv")),
    ],
)
def test_dashes_short_names_and_the_folder_anywhere_are_accepted(typed: list[str], reading: Reading) -> None:
    assert read(typed, "serve") == reading
    assert "--data takes one folder" in read([*typed, "--data"], "serve").fault


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("engin", "There is no command engin. Did you mean `tickwire-server engine`?"),
        ("isue_key", "There is no command isue-key. Did you mean `tickwire-server issue-key`?"),
        ("xyzzy", "There is no command xyzzy. `tickwire-server help` lists all commands."),
    ],
)
def test_a_mistyped_command_is_answered_with_the_nearest(typed: str, sentence: str) -> None:
    assert execute([typed]) == sentence


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["createsuperuser"], "createsuperuser asks for a name and a password, and there is no terminal."),
        (["changepassword", "ada"], "The input ended before the password was given twice."),
    ],
)
def test_a_command_that_asks_says_so_where_nobody_answers(
    words: list[str], sentence: str, tmp_path: Path
) -> None:
    for name in ("migrate", "issue_key"):
        assert manage(tmp_path, name, *(["ada"] * (name == "issue_key"))).returncode == 0
    # In a session of its own, because a password is asked for at the terminal of the session.
    command = [sys.executable, "manage.py", *words]
    ended = subprocess.run(
        command,
        env=environment(tmp_path),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=START_PATIENCE_S,
        start_new_session=True,
    )

    assert ended.returncode == 1
    assert sentence in ended.stderr
    assert "Traceback" not in ended.stderr


INTERRUPTED = """
import signal
from config.command_line import words
from tickwire_server import main

signal.signal(signal.SIGINT, signal.default_int_handler)
words.read = lambda *given: signal.raise_signal(signal.SIGINT)
assert main() == 130
signal.raise_signal(signal.SIGINT)
"""


def test_ctrl_c_is_one_word_while_a_command_starts_and_nothing_while_it_ends() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=START_PATIENCE_S
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (-signal.SIGINT, "", "\nStopped.\n")
