"""The finished days in memory. The store is asked for new ones on request, and seldom."""

import asyncio
import logging
import time
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from hashlib import sha256
from typing import Annotated, ClassVar, NamedTuple, ParamSpec, TypeVar

import msgspec
from msgspec import Meta

from archive.belonging import NotOurs, compare
from archive.manifests import MANIFESTS, BadManifest, BadPath, candles_path, decoded_of, parse, ticks_path
from archive.models import Installation
from archive.stores import ArchiveStore, NotStored, archive_store
from core import clock
from core.background import cancel_and_wait, is_done_within
from core.contract.errors import Overloaded
from core.database import UNANSWERED
from core.fault_log import LastingFault
from core.struct_schemas import Date, openapi
from core.threads import in_thread
from core.times import iso_date
from instruments.catalogue import may_be_passed_on

# Pure: the files of finished days, as the manifests name them, in order.
# As their paths are sorted.
KINDS = ("candles", "manifest", "ticks")


class ArchiveFile(msgspec.Struct, frozen=True):
    component: ClassVar[str] = "ArchiveFile"

    path: Annotated[str, Meta(description="The file is served at /api/archive/ followed by this path.")]
    kind: Annotated[str, openapi(enum=list(KINDS), description="What the file holds.")]
    symbol: Annotated[str | None, Meta(description="Null for a manifest.")]
    day: Annotated[Date, Meta(description="The UTC day whose data it holds.")]
    bytes: Annotated[int, Meta(ge=0, description="Size of the file.")]
    rows: Annotated[int | None, Meta(description="Ticks or candles; null for a manifest.")]
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$", description="Of the file's bytes; also its ETag.")]


class Kept(NamedTuple):
    file: ArchiveFile
    sources: Collection[str]


class Day(NamedTuple):
    """What the manifest of a day names, and the manifest itself."""

    day: date
    files: Mapping[str, Kept]
    """By path, and in its order."""
    symbols: frozenset[str | None]

    def of(self, kind: str | None, symbol: str | None) -> Iterator[Kept]:
        files: Iterable[Kept] = self.files.values()
        if symbol is not None:
            paths = (candles_path(symbol, self.day), ticks_path(symbol, self.day))
            files = (self.files[path] for path in paths if path in self.files)
        return (kept for kept in files if kind in (None, kept.file.kind))


def read_day(path: str, content: bytes) -> Day:
    """Raises BadManifest for what cannot have been written by us."""
    name = parse(path)
    manifest, day = decoded_of(name.day, content), str(name.day)
    kept = [Kept(ArchiveFile(path, "manifest", None, day, len(content), None, digest_of(content)), ())]
    for each in manifest.files:
        file = ArchiveFile(each.path, each.kind, each.symbol, day, each.bytes, each.rows, each.sha256)
        kept.append(Kept(file, tuple(each.sources)))
    kept.sort(key=lambda each: each.file.path)
    return Day(
        name.day, {each.file.path: each for each in kept}, frozenset(each.file.symbol for each in kept)
    )


def digest_of(content: bytes) -> str:
    return sha256(content).hexdigest()


class Wanted(NamedTuple):
    kind: str | None = None
    symbol: str | None = None
    first: str = ""
    """A day."""
    end: str = "9"
    """The day before which it ends."""
    after: tuple[str, str] = ("", "")
    """Day and path of the last file that was given."""


class FinishedDays:
    """All of them at one moment; it does not change."""

    def __init__(self, days: Mapping[str, Day]) -> None:
        self._days = {day: days[day] for day in sorted(days)}
        self._order = list(self._days)

    def has(self, symbol: str) -> bool:
        return any(symbol in day.symbols for day in self._days.values())

    def find(self, path: str) -> Kept | None:
        try:
            day = self._days.get(str(parse(path).day))
        except BadPath:
            return None
        return None if day is None else day.files.get(path)

    def page(self, wanted: Wanted, limit: int, is_served: Callable[[Kept], bool]) -> list[ArchiveFile]:
        """One more than the limit, if there is one."""
        found: list[ArchiveFile] = []
        for kept in self._walk(wanted):
            if is_served(kept):
                found.append(kept.file)
                if len(found) > limit:
                    break
        return found

    def _walk(self, wanted: Wanted) -> Iterator[Kept]:
        begin = bisect_left(self._order, max(wanted.first, wanted.after[0]))
        for day in self._order[begin : bisect_left(self._order, wanted.end)]:
            for kept in self._days[day].of(wanted.kind, wanted.symbol):
                if (day, kept.file.path) > wanted.after:
                    yield kept


def is_served(kept: Kept, withheld: Collection[str]) -> bool:
    return may_be_passed_on(kept.sources, withheld)


# The few threads in which the archive's store is asked. If it hangs, only those who read from it wait.
P = ParamSpec("P")
T = TypeVar("T")
THREADS = 8
# Longer than a store takes that is asked again and again.
PATIENCE_S = 90.0
AWAY = "The archive's store is not responding at the moment. Try again shortly."
_pool = ThreadPoolExecutor(THREADS, thread_name_prefix="archive")


async def in_archive_thread(ask: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    asked = asyncio.get_running_loop().run_in_executor(_pool, lambda: ask(*args, **kwargs))
    try:
        return await asyncio.wait_for(asked, PATIENCE_S)
    except TimeoutError:
        raise Overloaded(AWAY, retry_after=5) from None


def do_later(act: Callable[[], object]) -> None:
    """In a thread of the archive; the caller does not wait."""
    _pool.submit(act)


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
        # What was read stays, in case the rest takes longer than a request may wait.
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
