"""What this process knows to have been signed, besides the database: in memory, and in a file of the
installation. A database that was put back to an earlier state contradicts it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from django.conf import settings

from .checkpoints import Checkpoint

FILE = "ledger-checkpoint"


class Remembered:
    """The last checkpoint that was seen to extend all before it."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self._log = ""
        self.checkpoint: Checkpoint | None = None

    def of(self, log: str) -> Checkpoint | None:
        """`log`: the first key of a log, by which it is told apart from another one of the same name. Raises
        ValueError for a file that is not what was written."""
        if self._log != log:
            self._log, self.checkpoint = log, self._from_file(log)
        return self.checkpoint

    def remember(self, checkpoint: Checkpoint) -> None:
        """One of the log that was asked for last."""
        if self.checkpoint == checkpoint:
            return
        self.checkpoint = checkpoint
        # The disk of a production host may be read-only; then only the memory remains.
        with suppress(OSError):
            draft = path().with_name(f"{FILE}.{os.getpid()}")
            draft.write_text(f"{self._log}\n{checkpoint}")
            draft.replace(path())

    def _from_file(self, log: str) -> Checkpoint | None:
        known, text = in_file()
        return Checkpoint.read(text) if known == log else None


def last_of_any_log() -> Checkpoint | None:
    """The one in the file."""
    _, text = in_file()
    return Checkpoint.read(text) if text else None


def in_file() -> tuple[str, str]:
    """The log, and the text of its checkpoint; both are empty where there is no file."""
    try:
        log, _, text = path().read_text().partition("\n")
    except FileNotFoundError:
        return "", ""
    return log, text


def path() -> Path:
    return Path(settings.VAR_DIR) / FILE


remembered = Remembered()
