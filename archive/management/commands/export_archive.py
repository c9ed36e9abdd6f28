import tempfile
from argparse import ArgumentParser
from collections.abc import Collection
from datetime import date
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from archive.folding.parquet import digest, write_blocks
from archive.layout import manifest_path
from archive.management.days import add_span, archived_days, own_archive
from archive.manifests import ArchiveManifest, BadManifest, ManifestFile, decoded, encoded
from archive.stores import ArchiveStore, DiskStore, NotStored, StoreFault
from instruments.handing_on import may_be_handed_on
from instruments.models import WithheldSource


class Command(BaseCommand):
    help = (
        "Copy days of the archive into a folder, each file compared with its digest. Files of sources that "
        "may not be handed on stay behind. Begun again, it goes on with what is missing."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path)
        add_span(parser)
        parser.add_argument("--symbols", nargs="+", metavar="SYMBOL", help="Default: all.")

    def handle(self, *, folder: Path, **options: Any) -> None:
        store, to = own_archive(), DiskStore(folder)
        symbols = {symbol.upper() for symbol in options["symbols"] or ()}
        exporting = Exporting(store, to, symbols)
        days = archived_days(store, options["start"], options["end"])
        try:
            files = sum(exporting.copy_day(each) for each in days)
        except NotCopied as error:
            raise CommandError(str(error)) from None
        except StoreFault as error:
            raise CommandError(f"The archive cannot be read: {error}.") from None
        except OSError as error:
            raise CommandError(f"{folder} cannot be written: {error}.") from None
        if symbols and not files:
            raise CommandError(f"No file of {', '.join(sorted(symbols))} is archived in this span.")
        self.stdout.write(f"{files} files of {len(days)} days are in {folder}, each as its manifest says.")
        for name in sorted(exporting.withheld_files):
            self.stdout.write(f"Left behind: {name}, whose source may not be handed on.")


class NotCopied(Exception):
    """A file is not what its manifest says."""


class Exporting:
    def __init__(self, store: ArchiveStore, to: DiskStore, symbols: Collection[str]) -> None:
        self._store, self._to, self._symbols = store, to, symbols
        self._withheld = list(WithheldSource.objects.values_list("name", flat=True))
        self.withheld_files: list[str] = []

    def copy_day(self, day: date) -> int:
        """The manifest last, with what was copied; returns how many files."""
        try:
            manifest = decoded(self._store.read(manifest_path(day)))
        except BadManifest as error:
            raise NotCopied(f"The manifest of {day} cannot be used: {error}.") from None
        files = [file for file in manifest.files if self._is_wanted(file)]
        for file in files:
            self._copy(file)
        if files:
            self._put_manifest(day, manifest, files)
        return len(files)

    def _is_wanted(self, file: ManifestFile) -> bool:
        if self._symbols and file.symbol not in self._symbols:
            return False
        if may_be_handed_on(file.sources, self._withheld):
            return True
        self.withheld_files.append(file.path)
        return False

    def _copy(self, file: ManifestFile) -> None:
        there = self._to.root / file.path
        if there.exists() and digest(there) == file.sha256:
            return
        with tempfile.TemporaryDirectory(prefix="tickwire-") as folder:
            local = Path(folder) / "file"
            try:
                write_blocks(local, self._store.open(file.path))
            except NotStored:
                raise NotCopied(
                    f"{file.path} is in the manifest, and not in the archive: see `verify_archive`."
                ) from None
            if digest(local) != file.sha256:
                raise NotCopied(f"{file.path} was altered: see `verify_archive`.")
            self._to.put(file.path, local)

    def _put_manifest(self, day: date, manifest: ArchiveManifest, files: list[ManifestFile]) -> None:
        symbols = {file.symbol for file in files}
        manifest.files = files
        manifest.holes = [hole for hole in manifest.holes if hole.symbol in symbols]
        manifest.complete = not manifest.holes
        with tempfile.TemporaryDirectory(prefix="tickwire-") as folder:
            local = Path(folder) / "manifest"
            local.write_bytes(encoded(manifest))
            self._to.put(manifest_path(day), local)
