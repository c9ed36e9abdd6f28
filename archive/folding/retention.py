"""For how long the files of the archive are kept."""

import logging
from datetime import date, timedelta

from archive.layout import parse
from archive.stores import ArchiveStore

logger = logging.getLogger(__name__)


def drop_old(store: ArchiveStore, today: date, days: int) -> list[date]:
    """The days whose files were removed, the manifest of each first: it never names what is not there."""
    if not days:
        return []
    first_kept = today - timedelta(days=days)
    old = [path for path in store.listing() if parse(path).day < first_kept]
    for path in sorted(old, key=lambda path: parse(path).kind != "manifest"):
        store.remove(path)
    dropped = sorted({parse(path).day for path in old})
    if dropped:
        logger.info("Dropped %d old days of the archive, up to %s", len(dropped), dropped[-1])
    return dropped
