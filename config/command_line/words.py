"""What was typed. It is read without Django, so that help and a mistake are answered at once."""

import os
from typing import NamedTuple

from core.program.commands import (
    NAME,
    SHORT_NAMES,
    NoFolder,
    is_installed_command,
    take_data_folder,
)
from core.program.version import VERSION

from .help import overview

HELP = (["help"], ["--help"], ["-h"])


class Reading(NamedTuple):
    words: list[str]
    """The sub-command by Django's name, and what follows; empty where nothing is to be done."""
    folder: str = ""
    """Of `--data`: where this call keeps what it keeps."""
    answer: str = ""
    fault: str = ""


def read(words: list[str], without: str) -> Reading:
    """`words`: without the program's name. `without`: the sub-command of a call that names none."""
    try:
        folder, words = take_data_folder(words)
    except NoFolder as error:
        return Reading([], fault=str(error))
    folder = os.path.abspath(os.path.expanduser(folder)) if folder else ""
    if words in (["--version"], ["version"]):
        return Reading([], answer=f"{NAME} {VERSION}")
    if not words or (words[0].startswith("-") and words not in HELP):
        words = [without, *words]
    if words in HELP:
        return Reading([], answer=overview(typed_name()))
    # After `help` stands another one.
    names = 2 if words[0] == "help" else 1
    return Reading([*map(_canonical, words[:names]), *words[names:]], folder)


def typed_name() -> str:
    return NAME if is_installed_command() else "manage.py"


def _canonical(name: str) -> str:
    """`issue-key` is the file issue_key.py, and `engine` is run_engine.py."""
    long_names = {short: long for long, short in SHORT_NAMES.items()}
    return long_names.get(name) or name.replace("-", "_")
