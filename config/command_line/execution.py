"""Executes a command, and reports in one sentence what an operator can fix."""

import errno
import sqlite3
import sys
from difflib import get_close_matches
from pathlib import Path

import django
import psycopg
from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line, get_commands
from django.db import connection
from django.db.migrations.exceptions import MigrationSchemaMissing
from django.db.utils import InternalError, OperationalError, ProgrammingError

from config.environment import env
from config.installation import prepare, refuse_lost_secret, require_data, require_database
from core.process import (
    LET_IT_OWN,
    NAME_THE_PRIMARY,
    TAKES_NO_WRITES,
    connect_once,
    first_line,
    is_damaged,
    restore_in_its_place,
)
from core.program import ROOT, EvenUnread, command, is_installed_command

from .words import COMMANDS, NEED_DATA, NEED_DATABASE, as_typed, typed_name

# Faults of the environment, each as one sentence with what to do.
NO_TABLES = "The database has no tables yet."


def explain(error: BaseException) -> str | None:
    """None for a bug, which keeps its traceback."""
    if isinstance(error, ImproperlyConfigured):
        return str(error)
    if isinstance(error, OSError):
        return _explain_os(error)
    if is_damaged(error):
        return f"The database file {connection.settings_dict['NAME']} is damaged. {restore_in_its_place()}"
    if isinstance(error, MigrationSchemaMissing) and error.__context__:
        # Django wraps it when it may not create its first table.
        return explain(error.__context__)
    if isinstance(error, OperationalError | ProgrammingError | InternalError):
        return _explain_database(error)
    return None


ANOTHER_FOLDER = "choose another folder with --data or VAR_DIR."


def _explain_os(error: OSError) -> str | None:
    where = f" ({error.filename})" if error.filename else ""
    match error.errno:
        case errno.ENOSPC:
            return f"The disk is full{where}. Free some space and start again; nothing was lost."
        case errno.EDQUOT:
            return f"This user's disk quota is used up{where}. Free some space, or have the quota raised."
        case errno.EACCES | errno.EPERM | errno.EROFS | errno.ENOTDIR | errno.EEXIST if where:
            mend = f"Run it as the owner, change the permissions, or {ANOTHER_FOLDER}"
            return f"Tickwire may not read or write here{where}. {mend}"
        case errno.ENOENT | errno.EISDIR if _is_elsewhere(error.filename):
            what = "is a folder and not a file" if error.errno == errno.EISDIR else "cannot be made or found"
            return f"{error.filename} {what}. Correct the path, or {ANOTHER_FOLDER}"
        case errno.EMFILE | errno.ENFILE:
            return "Too many files are open. Raise the limit: ulimit -n, or LimitNOFILE of systemd."
        case errno.EADDRINUSE:
            other = command("serve --port 8001")
            return f"{error.strerror}. Stop what is using the port, or choose another: `{other}`"
    return None


def _is_elsewhere(path: object) -> bool:
    """Not beside our code, where a missing file is a fault of ours."""
    return isinstance(path, str) and not Path(path).resolve().is_relative_to(ROOT)


def _explain_database(error: Exception) -> str | None:
    text = str(error).strip()
    match error.__cause__:
        case sqlite3.Error():
            return _explain_sqlite(text)
        case psycopg.errors.ReadOnlySqlTransaction():
            return f"{TAKES_NO_WRITES} {NAME_THE_PRIMARY}"
        case psycopg.errors.InsufficientPrivilege() as cause:
            return f"The role in DATABASE_URL lacks permissions: {first_line(cause)}. {LET_IT_OWN}"
        case psycopg.errors.DiskFull() as cause:
            return f"The disk of the database is full: {first_line(cause)}. Free some space there."
    if "does not exist" in text and "relation" in text:
        return f"{NO_TABLES} Run `{command('migrate')}` first."
    if isinstance(error, OperationalError):
        reason = _asked_directly() or text.splitlines()[0].rstrip(".")
        return f"The database does not answer: {reason}. Check DATABASE_URL and that it is running."
    return None


def _explain_sqlite(text: str) -> str | None:
    file = connection.settings_dict["NAME"]
    if "full" in text:
        return "The disk is full, so the database cannot be written. Free some space and start again."
    if "no such table" in text:
        return f"{NO_TABLES} Run `{command('migrate')}` first; `{command('serve')}` does it, too."
    if "unable to open" in text:
        return "The database file cannot be opened. Is VAR_DIR (or --data) a folder you may write to?"
    if "readonly" in text:
        return f"The database file {file} may not be written. Make it and its folder writable for this user."
    if "is locked" in text:
        return (
            f"Something has been writing to {file} for a long time. Repeat the command when that has ended."
        )
    return None


def _asked_directly() -> str:
    """Why the database refuses connections, for example a wrong password; the pool reports only a timeout."""
    try:
        connect_once()
    except psycopg.Error as error:
        return first_line(error)
    return ""


GO_ON_UNREAD = {"serve", "run_engine", "seed_demo"}

WITHOUT_TERMINAL = (
    "createsuperuser asks for a name and a password, and there is no terminal. Without one set"
    " DJANGO_SUPERUSER_PASSWORD and name the rest: `{program} createsuperuser --no-input --username NAME"
    " --email ADDRESS`."
)


def execute(words: list[str]) -> str:
    """Returns the fault as a sentence, if any. A bug keeps its traceback."""
    try:
        _begin(words)
        if words[0] not in COMMANDS and (fault := _unknown(words[0])):
            return fault
        if _lacks_terminal(words):
            return WITHOUT_TERMINAL.format(program=typed_name())
        try:
            execute_from_command_line([typed_name(), *words])
        except EOFError:
            if words[0] != "changepassword":
                raise
            # The question is still on the line.
            return "\nThe input ended before the password was given twice. Nothing was changed."
    except Exception as error:  # noqa: BLE001 - the top of the program: known faults become one sentence
        if (fault := explain(error) or "") == "":
            raise
        return fault
    return ""


def _begin(words: list[str]) -> None:
    name = words[0]
    if name == "help" or {"-h", "--help"} & set(words):
        # It is the same with any of them, and a wrong one must not keep it back.
        env.forget_all_but("VAR_DIR", "XDG_DATA_HOME")
        return
    if name in GO_ON_UNREAD:
        sys.stdout = EvenUnread(sys.stdout)
    # These only read what is there.
    if name == "doctor":
        refuse_lost_secret()
        return
    if _looks_at_a_copy(name, words):
        return
    if name in NEED_DATA:
        require_data()
        return
    if name in NEED_DATABASE:
        require_database()
    prepare()


def _looks_at_a_copy(name: str, words: list[str]) -> bool:
    """Which may lie where nothing else is kept."""
    option = {"backup": "--verify", "verify_archive": "--folder"}.get(name)
    return option is not None and any(word.partition("=")[0] == option for word in words)


def _lacks_terminal(words: list[str]) -> bool:
    """Without one, Django prints a note and exits as if it had created the user."""
    needs_none = {"-h", "--help", "--no-input", "--noinput"} & set(words)
    has_terminal = sys.stdin is not None and sys.stdin.isatty()
    return words[0] == "createsuperuser" and not needs_none and not has_terminal


def _unknown(name: str) -> str:
    """Empty for one of Django's or of a library."""
    django.setup()
    # Django answers `help NAME` itself.
    known = {*get_commands(), "help"}
    if name in known:
        return ""
    is_installed = is_installed_command()
    names = [as_typed(each, is_installed) for each in sorted(known)]
    shown = as_typed(name, is_installed)
    close = get_close_matches(shown, names, 1)
    program = typed_name()
    hint = f"Did you mean `{program} {close[0]}`?" if close else f"`{program} help` lists all commands."
    return f"There is no command {shown}. {hint}"
