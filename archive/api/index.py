"""The finished days in memory. Whether there are new ones is looked up when somebody asks, and seldom."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from archive.belonging import NotOurs, compare
from archive.layout import MANIFESTS, parse
from archive.manifests import BadManifest
from archive.models import Installation
from archive.stores import ArchiveStore, NotStored, archive_store
from core import clock
from core.background import cancel_and_wait, is_done_within
from core.contract.errors import Overloaded
from core.database import UNANSWERED
from core.fault_log import LastingFault
from core.threads import in_thread
from core.times import iso_date

from .days import Day, FinishedDays, read_day
from .threads import AWAY, in_archive_thread

logger = logging.getLogger(__name__)
LOOK_EVERY_S, LOOK_AGAIN_S = 10.0, 2.0

# A store that does not answer leaves what was known before.
PROMPTLY_S = 2.0


KnownInstallation = Callable[[], Awaitable[Installation | None]]


async def known_installation() -> Installation | None:
    return await in_thread(Installation.objects.known)


class ArchiveIndex:
    def __init__(
        self, store: Callable[[], ArchiveStore] = archive_store, known: KnownInstallation = known_installation
    ) -> None:
        self._store, self._known = store, known
        self._read: dict[str, tuple[str, Day]] = {}
        """Manifests by path, each with the mark that it had when it was read."""
        self._days: FinishedDays | None = None
        self._look_at_s = 0.0
        """By the monotonic clock."""
        self._looking: asyncio.Task[None] | None = None
        self._fault = LastingFault(logger, "The archive cannot be listed")
        self._bad = LastingFault(logger, "A manifest of the archive cannot be read, so its day is not served")

    async def current(self) -> FinishedDays:
        if time.monotonic() >= self._look_at_s:
            if self._looking is None or self._looking.done():
                self._looking = asyncio.create_task(self._look(), name="look at the archive")
            await is_done_within(self._looking, PROMPTLY_S)
        if self._days is None:
            raise Overloaded(AWAY, retry_after=5)
        return self._days

    def forget(self) -> None:
        """What is known is not what is stored: look again at once."""
        self._look_at_s = 0.0

    async def stop(self) -> None:
        await cancel_and_wait(self._looking)
        self._looking = None

    async def _look(self) -> None:
        try:
            self._days = await in_archive_thread(self._find, await self._known())
        except (OSError, *UNANSWERED) as error:
            self._fault.tell(error)
            if isinstance(error, NotOurs):
                # What was known is not there: it is no archive that is merely away.
                self._days = None
            # A store that is away is not asked for each request.
            self._look_at_s = time.monotonic() + LOOK_AGAIN_S
        else:
            self._fault.over()
            self._look_at_s = time.monotonic() + LOOK_EVERY_S

    def _find(self, known: Installation | None) -> FinishedDays:
        store, today = self._store(), iso_date(clock.now_ms())
        compare(store, known)
        marks = store.marks(MANIFESTS)
        # What was read stays, should all of them take longer than anybody waits.
        self._read = read = {path: found for path, found in self._read.items() if marks.get(path) == found[0]}
        for path, mark in marks.items():
            if path not in read and (day := self._read_day(store, path)) is not None:
                read[path] = mark, day
        days = {str(parse(path).day): day for path, (_, day) in read.items()}
        return FinishedDays({name: day for name, day in days.items() if name < today})

    def _read_day(self, store: ArchiveStore, path: str) -> Day | None:
        try:
            return read_day(path, store.read(path))
        except NotStored:
            return None
        except BadManifest as error:
            self._bad.tell(f"{path}: {error}")
            return None


archive_index = ArchiveIndex()
