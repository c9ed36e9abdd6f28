"""The database as a process finds it: does it answer, can it be written."""

from __future__ import annotations

import logging
import sqlite3

from django.db import DatabaseError, close_old_connections

from status.models import ProcessReport

from .verdict import OK

logger = logging.getLogger(__name__)
AWAY, READ_ONLY, FULL, UNWRITABLE, WAITS = "away", "read-only", "full", "cannot be written", "waits"
# SQLSTATE: https://www.postgresql.org/docs/current/errcodes-appendix.html
DISK_FULL, READ_ONLY_TRANSACTION = "53100", "25006"


class Look:
    """One look, in a thread. Until it has ended it says what it has found so far."""

    def __init__(self, process: str, ages_s: dict[str, float]) -> None:
        self._process, self._ages_s = process, ages_s
        self.reading, self.writing = AWAY, AWAY
        self.others: list[dict[str, float]] = []
        """How long ago each other process found each thing in order."""

    def run(self) -> None:
        try:
            self._read_and_write()
        finally:
            close_old_connections()

    def _read_and_write(self) -> None:
        """Reading first: where only writing fails, most requests succeed."""
        try:
            self.others = ProcessReport.objects.of_others(self._process)
        except DatabaseError as error:
            logger.debug("The database does not answer: %s", error)
            return
        self.reading, self.writing = OK, WAITS
        try:
            ProcessReport.objects.tell(self._process, self._ages_s)
            ProcessReport.objects.prune()
            self.writing = OK
        except DatabaseError as error:
            self.writing = why_unwritable(error)


def why_unwritable(error: DatabaseError) -> str:
    cause = error.__cause__
    if isinstance(cause, sqlite3.Error):
        text = str(cause)
        return FULL if "full" in text or "I/O" in text else READ_ONLY if "readonly" in text else UNWRITABLE
    state = getattr(cause, "sqlstate", None)
    return {DISK_FULL: FULL, READ_ONLY_TRANSACTION: READ_ONLY}.get(state or "", UNWRITABLE)
