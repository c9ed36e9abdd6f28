"""Pure: the files of finished days, as the manifests name them, in order."""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import date
from hashlib import sha256
from typing import Annotated, ClassVar, NamedTuple

import msgspec
from msgspec import Meta

from archive.layout import BadPath, candles_path, parse, ticks_path
from archive.manifests import decoded_of
from core.struct_schemas import Date, openapi
from instruments.handing_on import may_be_handed_on

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
    return may_be_handed_on(kept.sources, withheld)
