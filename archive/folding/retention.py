"""For how long the files of the archive are kept."""

import logging
from datetime import date, timedelta

from archive.layout import parse
from archive.stores import ArchiveStore

logger = logging.getLogger(__name__)


def drop_old(store: ArchiveStore, today: date, days: int, made: list[date]) -> list[date]:
    """The days whose files were removed, the manifest of each first: it never names what is not there. They
    are counted back from the newest that has files, so that no clock that is ahead empties the archive."""
    paths = store.listing() if days else []
    if not paths:
        return []
    newest = max(parse(path).day for path in paths)
    first_kept = min(today, newest + timedelta(days=1)) - timedelta(days=days)
    old = [path for path in paths if parse(path).day < first_kept]
    for path in sorted(old, key=lambda path: parse(path).kind != "manifest"):
        store.remove(path)
    dropped = sorted({parse(path).day for path in old})
    for day in dropped:
        if day in made:
            logger.warning("Dropped %s as soon as it was archived: ARCHIVE_DAYS is %d", day, days)
        else:
            logger.info("Dropped %s from the archive: ARCHIVE_DAYS is %d", day, days)
    return dropped
