"""Files that are not what their manifest says."""

import logging
import time
from collections.abc import Callable
from threading import Lock
from typing import NamedTuple

from archive.stores import archive_store
from core.contract.errors import Overloaded

from .days import ArchiveFile
from .index import archive_index
from .threads import AWAY, in_archive_thread

logger = logging.getLogger(__name__)
CHANGED = "This file is just being replaced. Try again shortly."
DAMAGED = (
    "This file is damaged in the archive, so it is not served until staff have restored it. Other files are."
)
# Until staff have looked, it is the same.
LOOK_LATER_S = 3600
# A file is put before its manifest, and of a long day with many others between.
REPLACED_WITHIN_S = 60.0


class OtherFile(Exception):
    """What is stored is not what the manifest names; the reason goes on a sentence about it."""

    def __init__(self, says: str, *, may_be_newer: bool) -> None:
        super().__init__(says)
        self.may_be_newer = may_be_newer


class Suspected(NamedTuple):
    version: tuple[str, str]
    """The digest that it should have, and the store's mark of what is there."""
    since_s: float
    is_told: bool = False


class DamagedFiles:
    """Each is logged once, and refused at once until it is replaced. It asks the store, so call it in a
    thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[str, Suspected] = {}
        self._lock = Lock()

    def has(self, file: ArchiveFile) -> bool:
        known = self._known.get(file.path)
        if known is None or not known.is_told:
            return False
        if known.version == version_of(file):
            return True
        self._known.pop(file.path, None)
        return False

    def confirms(self, file: ArchiveFile, found: OtherFile) -> bool:
        """Whether it is damage, and no newer file whose manifest is still to come."""
        now_s, version = self._clock(), version_of(file)
        with self._lock:
            known = self._known.get(file.path)
            if known is None or known.version != version:
                known = Suspected(version, now_s)
            is_damage = not found.may_be_newer or now_s - known.since_s >= REPLACED_WITHIN_S
            self._known[file.path] = known._replace(is_told=is_damage or known.is_told)
        if is_damage and not known.is_told:
            logger.error(
                "%s in the archive %s, so it is not served. The command verify_archive tells more; restore "
                "the file from a copy",
                *(file.path, found),
            )
        return is_damage


damaged_files = DamagedFiles()


def version_of(file: ArchiveFile) -> tuple[str, str]:
    return file.sha256, archive_store().marks(file.path).get(file.path, "")


def refuse_damaged(file: ArchiveFile) -> None:
    if damaged_files.has(file):
        raise Overloaded(DAMAGED, retry_after=LOOK_LATER_S)


async def refusal_of(file: ArchiveFile, found: OtherFile) -> Overloaded:
    """After another look at the manifests: what is known of them may be older than the file."""
    archive_index.forget()
    kept = (await archive_index.current()).find(file.path)
    try:
        is_same = kept is not None and kept.file == file
        is_damaged = is_same and await in_archive_thread(damaged_files.confirms, file, found)
    except OSError:
        return Overloaded(AWAY, retry_after=5)
    return Overloaded(DAMAGED, retry_after=LOOK_LATER_S) if is_damaged else Overloaded(CHANGED, retry_after=5)
