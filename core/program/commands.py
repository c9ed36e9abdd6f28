"""How this program was started, so that what it tells people to type works where they are."""

import shlex
import sys
from pathlib import Path

NAME = "tickwire-server"
ROOT = Path(__file__).resolve().parents[2]
IS_CHECKOUT = (ROOT / "manage.py").exists()
"""Otherwise it is installed from a wheel, in a folder that may be read-only."""

# What the installed command calls differently. All other names only change underscores into dashes.
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
