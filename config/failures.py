"""Says in one sentence what is wrong around the program, and what to do."""

import errno
import sqlite3

from django.core.exceptions import ImproperlyConfigured
from django.db.utils import OperationalError, ProgrammingError


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
            return (
                f"Tickwire may not write here{where}. Make it writable, or set VAR_DIR to a folder that is."
            )
        case errno.EADDRINUSE:
            return f"{error.strerror}. Stop what is using the port, or choose another: PORT=8001 make run"
    return None


def _explain_database(error: Exception) -> str | None:
    text = str(error).strip()
    if isinstance(error.__cause__, sqlite3.Error):
        if "full" in text:
            return "The disk is full, so the database cannot be written. Free some space and start again."
        if "no such table" in text:
            return (
                "The database has no tables yet. Run `manage.py migrate` first (`make run` does it for you)."
            )
        if "unable to open" in text:
            return "The database file cannot be opened. Is VAR_DIR a folder you may write to?"
        return None
    if "does not exist" in text and "relation" in text:
        return "The database has no tables yet. Run `manage.py migrate` first."
    if isinstance(error, OperationalError):
        reason = text.splitlines()[0].rstrip(".")
        return f"The database does not answer: {reason}. Check DATABASE_URL and that it is running."
    return None
