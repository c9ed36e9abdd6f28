"""This program as it was started: how its commands are typed, who runs them, and where their output goes."""

import getpass
import os
import select
import shlex
import sys
from pathlib import Path
from typing import Any, TextIO

# How this program was started, so that the commands in its messages work for the reader.
NAME = "tickwire-server"
ROOT = Path(__file__).resolve().parents[1]
IS_CHECKOUT = (ROOT / "manage.py").exists()
"""Otherwise it is installed from a wheel, in a folder that may be read-only."""

# Names that differ in the installed command. All others only change underscores into dashes.
SHORT_NAMES = {"run_engine": "engine"}
DATA_OPTION = "--data"


class NoFolder(ValueError):
    """`--data` without one, or with several."""


def command(words: str) -> str:
    """`issue_key NAME` as it is typed to this installation: on its path, with its data."""
    folder, _ = take_data_folder(sys.argv[1:])
    data = f" {DATA_OPTION} {shlex.quote(folder)}" if folder else ""
    name, space, rest = words.partition(" ")
    if not is_installed_command():
        return f"{_python()} manage.py{data} {words}"
    return f"{_installed()}{data} {SHORT_NAMES.get(name, name.replace('_', '-'))}{space}{rest}"


def take_data_folder(words: list[str]) -> tuple[str, list[str]]:
    """`--data DIR` may stand anywhere; what remains is for the sub-command."""
    folders, others = [], []
    left = iter(words)
    for word in left:
        if word == DATA_OPTION:
            folders.append(next(left, ""))
        elif word.startswith(f"{DATA_OPTION}="):
            folders.append(word.partition("=")[2])
        else:
            others.append(word)
    if len(folders) > 1 or "" in folders:
        raise NoFolder(f"{DATA_OPTION} takes one folder: {NAME} {DATA_OPTION} ~/tickwire serve")
    return "".join(folders), others


def is_installed_command() -> bool:
    called = Path(sys.argv[0])
    return not IS_CHECKOUT or called.name == NAME or called.parent.name == "tickwire_server"


def _python() -> str:
    own = ROOT / ".venv"
    return ".venv/bin/python" if own.exists() and own.samefile(sys.prefix) else "python"


def _installed() -> str:
    # uvx puts nothing on the path of the shell: its environments lie in the cache of uv.
    return f"uvx {NAME}" if "archive-v0" in Path(sys.prefix).parts else NAME


# Who runs a command.
def operator() -> str:
    """With characters that no username may contain. In an image the user may be a number without a name."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = str(os.getuid())
    return f"{name} (operator)"


# Standard output whose reader may go, as with `| head`.
def is_unread() -> bool:
    """Otherwise it is another pipe that broke."""
    look = select.poll()
    look.register(sys.stdout.fileno(), 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in look.poll(0))


def give_up() -> None:
    """Discards pending output: Python flushes at exit, and would report an error."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


class EvenUnread:
    """For a process that goes on without a reader."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def write(self, text: str) -> int:
        try:
            return self._out.write(text)
        except BrokenPipeError:
            give_up()
            return len(text)

    def flush(self) -> None:
        try:
            self._out.flush()
        except BrokenPipeError:
            give_up()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._out, name)
