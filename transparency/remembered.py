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
        try:
            written = path().read_text()
        except FileNotFoundError:
            return None
        known, _, text = written.partition("\n")
        return Checkpoint.read(text) if known == log else None


def path() -> Path:
    return Path(settings.VAR_DIR) / FILE


remembered = Remembered()
