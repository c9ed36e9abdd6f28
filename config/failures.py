"""Says in one sentence what is wrong around the program, and what to do."""

import errno
import sqlite3

import psycopg
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.db.utils import OperationalError, ProgrammingError

from core.process import connect_once, first_line
from core.program.commands import command

NO_TABLES = "The database has no tables yet."


def explain(error: BaseException) -> str | None:
    """None for a bug, which keeps its traceback."""
    if isinstance(error, ImproperlyConfigured):
        return str(error)
    if isinstance(error, OSError):
        return _explain_os(error)
    if isinstance(error, OperationalError | ProgrammingError):
        return _explain_database(error)
    return None


def _explain_os(error: OSError) -> str | None:
    where = f" ({error.filename})" if error.filename else ""
    match error.errno:
        case errno.ENOSPC:
            return f"The disk is full{where}. Free some space and start again; nothing was lost."
        case errno.EACCES | errno.EROFS | errno.ENOTDIR | errno.EEXIST:
            way_out = "Make it writable, or choose another folder with --data or VAR_DIR."
            return f"Tickwire may not write here{where}. {way_out}"
        case errno.EADDRINUSE:
            other = command("serve --port 8001")
            return f"{error.strerror}. Stop what is using the port, or choose another: `{other}`"
    return None


def _explain_database(error: Exception) -> str | None:
    text = str(error).strip()
    if isinstance(error.__cause__, sqlite3.Error):
        if "full" in text:
            return "The disk is full, so the database cannot be written. Free some space and start again."
        if "no such table" in text:
            return f"{NO_TABLES} Run `{command('migrate')}` first; `{command('serve')}` does it, too."
        if "unable to open" in text:
            return "The database file cannot be opened. Is VAR_DIR (or --data) a folder you may write to?"
        return None
    if "does not exist" in text and "relation" in text:
        return f"{NO_TABLES} Run `{command('migrate')}` first."
    if isinstance(error, OperationalError):
        reason = _asked_directly() or text.splitlines()[0].rstrip(".")
        return f"The database does not answer: {reason}. Check DATABASE_URL and that it is running."
    return None


def _asked_directly() -> str:
    """Why the database lets nobody in, for example a wrong password; the pool says only that it waited."""
    if connection.vendor == "postgresql":
        try:
            connect_once()
        except psycopg.Error as error:
            return first_line(error)
    return ""
