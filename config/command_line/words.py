"""Reads the command line without Django, so that help and mistakes are answered at once."""

import os
from typing import NamedTuple

from core.program import DATA_OPTION, NAME, SHORT_NAMES, NoFolder, is_installed_command, take_data_folder
from core.version import VERSION

# The list of commands, because importing them all takes too long.
GROUPS: dict[str, dict[str, str]] = {
    "Running it": {
        "serve": "Serve pages, REST and streams; outside production with the demo.",
        "run_engine": "Run the market engine beside several web processes; twice for a standby.",
        "witness": "Cosign the checkpoints of other installations' ledgers.",
        "migrate": "Upgrade the database to this version, beside a running service.",
        "doctor": "Check the installation; each fault comes with a fix.",
        "collectstatic": "Collect the static files; in production `serve` does it where they are missing.",
        "check": "Check the settings; `check --deploy` as production does.",
    },
    "Keeping it": {
        "backup": "Write the whole database into one file, beside a running service.",
        "restore": "Restore a backup into an empty database, or in place of the present data.",
        "move": "Copy everything from SQLite to PostgreSQL, or back.",
    },
    "Accounts and keys": {
        "createsuperuser": "Create a login for the back office.",
        "changepassword": "Set a user's password.",
        "issue_key": "Print a new API key, and nothing else.",
        "revoke_key": "Revoke an API key or ingest key, in running services too.",
        "rotate_secrets": "Encrypt second factors with a new KEY_PEPPER; say when the old one can go.",
        "export_account": "Write everything that is stored about one person into a file.",
        "delete_account": "Delete an account permanently.",
        "issue_ingest_key": "Print a new key for sending prices.",
        "demo_login": "Print a one-time link into the demo's back office.",
    },
    "Market data": {
        "load_instruments": "Load instruments from a CSV file, or the shipped ones.",
        "import_ticks": "Make candles from files of past ticks.",
        "backfill": "Import the months of one-minute bars that a venue publishes.",
        "export_candles": "Write stored candles as CSV.",
        "record_feed": "Write what a venue sends, as lines that can be imported and replayed.",
    },
    "The archive": {
        "fold_archive": "Make the archive's files of finished days, as the engine does each night.",
        "verify_archive": "Verify the archive's files, minutes and signals; name what differs.",
        "export_archive": "Copy days of the archive into a folder, each file checked.",
    },
    "Signals and news": {
        "publish_signal": "Publish a signal, as the form does.",
        "ledger_key": "List the keys that sign the ledger's log; make a new one.",
        "verify_ledger": "Check the ledger of signals; names the first altered row.",
        "poll_news": "Poll the sources of news that are due, or those that are named.",
        "score_headlines": "Score the sentiment of headlines.",
    },
    "Working on it": {
        "seed_demo": "Generate the demo's data now, or again.",
        "settings_table": "Print the table of settings, or update its page.",
        "runserver": "Django's server for development, which lacks some closing codes of streams.",
        "shell": "A Python shell with everything set up.",
        "dbshell": "The shell of the database.",
    },
}
COMMANDS = {name for group in GROUPS.values() for name in group}
# Commands that need existing data; headlines come from a file or a pipe.
NEED_DATA = {
    *GROUPS["Accounts and keys"],
    *GROUPS["Market data"],
    *GROUPS["The archive"],
    *GROUPS["Signals and news"],
    "backup",
    "dbshell",
    # Of Django.
    *("clearsessions", "dumpdata", "flush", "inspectdb", "loaddata", "remove_stale_contenttypes"),
} - {"score_headlines"}
# Commands that create the folder, but no tables.
NEED_DATABASE = {"run_engine", "seed_demo"}

TEXT = """\
Tickwire serves market data, signals and news over REST and WebSocket.

{program} [{data} DIR] COMMAND …
{groups}

{program} help COMMAND says how a command is used. Data is kept in DIR; without {data}, in
VAR_DIR or {default}.
"""


def overview(program: str) -> str:
    """`program`: as it was typed."""
    is_installed = program == NAME
    default = "tickwire in $XDG_DATA_HOME or ~/.local/share" if is_installed else "var/"
    groups = "\n".join(f"\n{title}\n{_lines(group, is_installed)}" for title, group in GROUPS.items())
    return TEXT.format(program=program, data=DATA_OPTION, groups=groups, default=default)


def _lines(group: dict[str, str], is_installed: bool) -> str:
    return "\n".join(f"  {as_typed(name, is_installed):<18}{text}" for name, text in group.items())


def as_typed(name: str, is_installed: bool) -> str:
    return SHORT_NAMES.get(name, name.replace("_", "-")) if is_installed else name


HELP = (["help"], ["--help"], ["-h"])


class Reading(NamedTuple):
    words: list[str]
    """The sub-command by Django's name, and its arguments; empty if there is nothing to do."""
    folder: str = ""
    """From `--data`: the folder of this call."""
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
    # `help` is followed by another one.
    names = 2 if words[0] == "help" else 1
    return Reading([*map(_canonical, words[:names]), *words[names:]], folder)


def typed_name() -> str:
    return NAME if is_installed_command() else "manage.py"


def _canonical(name: str) -> str:
    """`issue-key` is the file issue_key.py, and `engine` is run_engine.py."""
    long_names = {short: long for long, short in SHORT_NAMES.items()}
    return long_names.get(name) or name.replace("-", "_")
