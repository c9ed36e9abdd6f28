"""What this process knows to have been signed, besides the database: in memory, and in a file of the
installation. A database that was put back to an earlier state contradicts it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from django.conf import settings

from core.contract.errors import Overloaded

from .checkpoints import Checkpoint

FILE = "ledger-checkpoint"


class Forked(Overloaded):
    """The ledger does not extend what was signed before, or may not: nothing is signed or written."""

    def __init__(self, message: str) -> None:
        super().__init__(message, retry_after=60)


class Remembered:
    """The last checkpoint that was seen to extend all before it."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self._log: str | None = None
        self.checkpoint: Checkpoint | None = None

    def of(self, log: str) -> Checkpoint | None:
        """`log`: the first key of a log, which distinguishes it from another one of the same name; empty
        before there is one. Raises Forked for a file that cannot be read."""
        if self._log != log:
            known, checkpoint = in_file()
            self._log, self.checkpoint = log, checkpoint if known == log else None
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


def in_file() -> tuple[str, Checkpoint | None]:
    """The log and its checkpoint, or nothing if there is no file. Raises Forked."""
    try:
        text = path().read_text()
        log, _, checkpoint = text.partition("\n")
        return log, Checkpoint.read(checkpoint) if text else None
    except FileNotFoundError:
        return "", None
    except (OSError, ValueError) as error:
        # As if there were none, a database that was put back would be signed.
        why = error.strerror if isinstance(error, OSError) else "it holds no checkpoint"
        raise Forked(f"What was signed last cannot be read from the file {FILE} ({why}).") from None


def path() -> Path:
    return Path(settings.VAR_DIR) / FILE


remembered = Remembered()
