"""Copies of days, for others or for a safe place, as files of one kind each."""

import tempfile
from collections.abc import Collection, Generator, Iterable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path

from msgspec.structs import replace

from archive.folding.parquet import digest, span_of, write_blocks
from archive.manifests import (
    OWNER,
    ArchiveManifest,
    BadManifest,
    Hole,
    ManifestFile,
    decoded_of,
    encoded,
    manifest_path,
)
from archive.stores import ArchiveStore, DiskStore, NotStored, StoreFault
from core.times import epoch_ms, iso_ms
from instruments.catalogue import may_be_passed_on
from instruments.models import WithheldSource


# Days of the archive, copied into a folder: past what is damaged, and with what was copied before.
class NotCopied(Exception):
    """A sentence without its full stop: what is damaged, and where."""


class Exporting:
    """Faults are collected, so that what is whole is copied."""

    def __init__(self, store: ArchiveStore, to: DiskStore, symbols: Collection[str]) -> None:
        self._store, self._to, self.symbols = store, to, symbols
        self._withheld = list(WithheldSource.objects.values_list("name", flat=True))
        self.withheld_files: list[str] = []
        self.no_longer_named: list[str] = []
        self.faults: list[str] = []
        self._found: set[str] = set()

    @property
    def not_found(self) -> list[str]:
        """Symbols of which no manifest names a file."""
        return sorted(set(self.symbols) - self._found)

    def copy_day(self, day: date) -> int:
        """The manifest last, with what is in the folder by then; returns how many files that is."""
        try:
            manifest, before = self._manifest(day), self._copied_before(day)
        except NotCopied as error:
            self.faults.append(f"{error}.")
            return 0
        self._found |= {file.symbol for file in manifest.files}
        self.no_longer_named += sorted(before - {file.path for file in manifest.files})
        wanted = [file for file in manifest.files if self._is_wanted(file, before)]
        damaged = [file for file in wanted if not self._is_copied(file)]
        exported = self._exported(day, manifest, wanted, damaged)
        if exported.files or exported.holes or damaged or before:
            self._put_manifest(day, exported)
        return len(exported.files)

    def _manifest(self, day: date) -> ArchiveManifest:
        with _telling(f"The manifest of {day}"):
            try:
                return decoded_of(day, self._store.read(manifest_path(day)))
            except NotStored:
                raise NotCopied(
                    f"There are files of {day}, and no manifest that names them: see `verify_archive`"
                ) from None

    def _copied_before(self, day: date) -> set[str]:
        """The paths that an earlier export named."""
        path = self._to.root / manifest_path(day)
        try:
            return {file.path for file in decoded_of(day, path.read_bytes()).files}
        except FileNotFoundError:
            return set()
        except BadManifest as error:
            raise NotCopied(
                f"{path} cannot be used: {error}. Nothing of {day} was copied; remove it and export again"
            ) from None

    def _is_wanted(self, file: ManifestFile, before: Collection[str]) -> bool:
        """What is in the folder already is named with the rest: no manifest may pass it over."""
        is_asked_for = not self.symbols or file.symbol in self.symbols
        if not is_asked_for and file.path not in before and not (self._to.root / file.path).exists():
            return False
        if may_be_passed_on(file.sources, self._withheld):
            return True
        self.withheld_files.append(file.path)
        return False

    def _is_copied(self, file: ManifestFile) -> bool:
        try:
            self._copy(file)
        except NotCopied as error:
            self.faults.append(f"{error}.")
            return False
        return True

    def _copy(self, file: ManifestFile) -> None:
        there = self._to.root / file.path
        if there.exists() and digest(there) == file.sha256:
            return
        with tempfile.TemporaryDirectory(prefix="tickwire-") as folder:
            local = Path(folder) / "file"
            write_blocks(local, self._blocks(file.path))
            if digest(local) != file.sha256:
                raise NotCopied(f"{file.path} was altered: see `verify_archive`")
            self._to.put(file.path, local)

    def _blocks(self, path: str) -> Generator[bytes, None, None]:
        with _telling(path):
            try:
                yield from self._store.open(path)
            except NotStored:
                raise NotCopied(
                    f"{path} is in the manifest, and not in the archive: see `verify_archive`"
                ) from None

    def _exported(
        self, day: date, manifest: ArchiveManifest, wanted: list[ManifestFile], damaged: list[ManifestFile]
    ) -> ArchiveManifest:
        """What is damaged is a hole, as if it had been lost."""
        start, end = (iso_ms(epoch_ms(at)) for at in span_of(day))
        lost = {
            file.symbol: Hole(file.symbol, start, end, file.rows, lost=True)
            for file in damaged
            if file.kind == "ticks"
        }
        named = {file.symbol for file in manifest.files}
        symbols = {file.symbol for file in wanted}
        # Of some symbols there is nothing but the hole.
        of = {hole.symbol for hole in manifest.holes if hole.symbol not in named}
        symbols |= {symbol for symbol in of if not self.symbols or symbol in self.symbols}
        holes = [hole for hole in manifest.holes if hole.symbol in symbols]
        holes = sorted([*holes, *lost.values()], key=lambda hole: (hole.symbol, hole.start))
        files = [file for file in wanted if file not in damaged]
        return replace(manifest, files=files, holes=holes, complete=not holes and not damaged)

    def _put_manifest(self, day: date, manifest: ArchiveManifest) -> None:
        content, path = encoded(manifest), manifest_path(day)
        with tempfile.TemporaryDirectory(prefix="tickwire-") as folder:
            local = Path(folder) / "manifest"
            local.write_bytes(content)
            self._to.put(path, local)


@contextmanager
def _telling(what: str) -> Iterator[None]:
    """A bucket that does not answer is no damage, and stops the export."""
    try:
        yield
    except StoreFault:
        raise
    except BadManifest as error:
        raise NotCopied(f"{what} cannot be used: {error}") from None
    except OSError as error:
        raise NotCopied(f"{what} cannot be read: {error.strerror or error}") from None


# Into which folders nothing is copied.
# What a copy is written into.
FOLDERS = ("ticks", "candles", "manifests")


def why_no_target(folder: Path, own: Iterable[Path]) -> str:
    """`own` are folders in which the program keeps the archive itself. Empty if nothing is in the way."""
    written = [(folder / name).resolve() for name in FOLDERS]
    for each in (path.resolve() for path in own):
        within = folder.resolve().is_relative_to(each)
        if within or any(path.is_relative_to(each) or each.is_relative_to(path) for path in written):
            return (
                f"{folder} and {each}, where the archive itself is kept, lie in one another: a copy would "
                "replace its files. Name another folder."
            )
    if (folder / OWNER).exists():
        return (
            f"{folder} is an archive that is in use: it has the file {OWNER}. A copy would replace its "
            "manifests. Name another folder."
        )
    return ""
