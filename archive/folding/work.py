"""What is done each night."""

import fcntl
from datetime import UTC, date, datetime

from archive.belonging import check
from archive.journal import TickJournal
from archive.sealing import seal_days
from archive.stores import ArchiveStore

from .fold import Folder, over
from .retention import drop_old


class Busy(Exception):
    """Another process is at it."""


def fold_what_is_due(journal: TickJournal, store: ArchiveStore, now: datetime, keep_days: int) -> list[date]:
    """Returns the days of which files were made, or something was put with them."""
    journal.path.mkdir(parents=True, exist_ok=True, mode=0o700)
    with journal.path.joinpath("folding.lock").open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy from None
        made = Folder(journal, store, now).run()
        check(store)
        seal_days(store, over(now))
        drop_old(store, now.astimezone(UTC).date(), keep_days, made)
        return made
