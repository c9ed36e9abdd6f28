"""The file of a backup: a ZIP of one text for each table, and a manifest that says what must be in them."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path

import msgspec
from django.core.management.base import CommandError

from .tables import Digest, StoredTable, digest

FORMAT = 1
MANIFEST = "manifest.json"
COMPRESSION = 3


class Contents(msgspec.Struct, frozen=True):
    """What must be in the text of one table."""

    table: StoredTable
    rows: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True):
    format: int
    made_at: datetime
    vendor: str
    migrations: tuple[tuple[str, str], ...]
    contents: tuple[Contents, ...]
    minute_months: tuple[str, ...]
    """Those that have candles of a minute, such as 2026-11."""
    ledger: tuple[int, str]
    """Position and hash of the last entry."""
    pepper: str = ""
    """The name of the KEY_PEPPER that was set."""
    numbers: dict[str, int] = {}
    """The last number that each table gave to a row."""

    @property
    def rows(self) -> int:
        return sum(each.rows for each in self.contents)


def place(table: StoredTable) -> str:
    return f"tables/{table.name}.rows"


def check_place(path: Path) -> None:
    """Of a new file."""
    if not path.parent.is_dir():
        raise CommandError(f"The folder {path.parent} does not exist. Create it first, or correct the path.")
    if path.exists():
        raise CommandError(f"{path} is there already. Name another file, or move it away.")


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """Readable only by its owner, and visible only once it is complete and on the disk."""
    check_place(path)
    draft = path.with_name(f"{path.name}.part")
    try:
        draft.unlink(missing_ok=True)
        draft.touch(mode=0o600)
        yield draft
        with draft.open("rb") as written:
            os.fsync(written.fileno())
        draft.rename(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except BaseException as error:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise
        is_unread = isinstance(error, BrokenPipeError)
        why = "its output is no longer read" if is_unread else error.strerror or str(error)
        raise CommandError(f"{path} could not be written: {why}. No file was left behind.") from None


@contextmanager
def new_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """Read again before it gets its name."""
    with new_file(path) as draft:
        with draft.open("wb") as file:
            packed = zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=COMPRESSION)
            try:
                yield packed
            except BaseException:
                # Closing it would write the directory of the ZIP, which a full disk cannot hold either.
                packed.fp = None
                raise
            packed.close()
        with closing(ArchiveReader(draft)) as reader:
            reader.verify()


def add(packed: zipfile.ZipFile, table: StoredTable, lines: Iterable[bytes]) -> Contents:
    with packed.open(place(table), "w", force_zip64=True) as out:
        return Contents(table, *digest(lines, out))


def finish(packed: zipfile.ZipFile, manifest: Manifest) -> None:
    packed.writestr(MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)))


class ArchiveReader:
    def __init__(self, path: Path) -> None:
        try:
            self._file = zipfile.ZipFile(path)
            self.manifest = msgspec.json.decode(self._file.read(MANIFEST), type=Manifest)
        except OSError as error:
            raise CommandError(f"{path} cannot be read: {error.strerror or error}.") from None
        except (zipfile.BadZipFile, KeyError, msgspec.MsgspecError):
            raise CommandError(f"{path} is not a backup, or it is incomplete.") from None
        if self.manifest.format != FORMAT:
            raise CommandError(f"{path} was made by a newer version. Restore it with that one.")
        self._path = path
        self.close = self._file.close

    def lines(self, table: StoredTable) -> Iterator[bytes]:
        try:
            with self._file.open(place(table)) as packed:
                yield from packed
        except (zipfile.BadZipFile, KeyError, OSError, ValueError, EOFError) as error:
            raise CommandError(f"{self._path} is damaged at {table.name}: {error}.") from None

    def verify(self) -> None:
        for each in self.manifest.contents:
            if digest(self.lines(each.table)) != Digest(each.rows, each.sha256):
                raise CommandError(f"{self._path} is damaged: {each.table.name} is not what was written.")
