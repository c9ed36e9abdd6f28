from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from archive.exporting import Exporting, why_no_target
from archive.journal import journal_folder
from archive.management.days import add_span, archived_days, own_archive
from archive.stores import ArchiveStore, DiskStore, StoreFault


class Command(BaseCommand):
    help = (
        "Copy days of the archive into a folder, each file compared with its digest. Files of sources that "
        "may not be passed on are left out. Damaged files are left out and named, and the command exits with "
        "1. Started again, it continues with what is missing; days and symbols may be added."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path)
        add_span(parser)
        parser.add_argument("--symbols", nargs="+", metavar="SYMBOL", help="Default: all.")

    def handle(self, *, folder: Path, **options: Any) -> None:
        store = own_archive()
        if why_not := why_no_target(folder, _own_folders(store)):
            raise CommandError(why_not)
        symbols = {symbol.upper() for symbol in options["symbols"] or ()}
        exporting = Exporting(store, DiskStore(folder), symbols)
        days = archived_days(store, options["start"], options["end"])
        try:
            files = sum(exporting.copy_day(each) for each in days)
        except StoreFault as error:
            raise CommandError(f"The archive cannot be read: {error}.") from None
        except OSError as error:
            raise CommandError(f"{folder} cannot be written: {error}.") from None
        finally:
            for fault in exporting.faults:
                self.stderr.write(f"  {fault}")
        self._report(exporting, folder, files, len(days))

    def _report(self, exporting: Exporting, folder: Path, files: int, days: int) -> None:
        unknown = exporting.not_found
        none_of = f"No file of {', '.join(unknown)} is archived in this span."
        if unknown and len(unknown) == len(exporting.symbols) and not exporting.faults:
            raise CommandError(none_of)
        if unknown:
            self.stdout.write(none_of)
        self.stdout.write(f"{files} files of {days} days are in {folder}, each as its manifest says.")
        for name in sorted(exporting.withheld_files):
            self.stdout.write(f"Left out: {name}, whose source may not be passed on.")
        for name in exporting.no_longer_named:
            self.stdout.write(f"No longer named: {name}, which the archive's own manifest lacks.")
        if number := len(exporting.faults):
            what = "1 fault" if number == 1 else f"{number} faults"
            raise CommandError(f"{what}: what is damaged was left out, and the rest is copied.")


def _own_folders(store: ArchiveStore) -> list[Path]:
    roots = [store.root] if isinstance(store, DiskStore) else []
    return [*roots, journal_folder().path]
