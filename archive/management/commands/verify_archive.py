from argparse import ArgumentParser
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from archive.journal import LACKS_PYARROW, has_pyarrow
from archive.management.days import NONE_YET, add_span, archived_days, day, own_archive
from archive.proving import DayVerdict, verify_day
from archive.stores import ArchiveStore, DiskStore
from signals_feed.ledger_days import sealed_days

NO_COPY = "{folder} is not a copy of an archive: name the folder that contains ticks/ and manifests/."


class Command(BaseCommand):
    help = (
        "Verify the archive: digests and rows of its files, the ledger's head and seals, minutes computed "
        "from the ticks alone, and signals judged again by them. Exits with 1 if anything differs."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--day", type=day, help="Only this one.")
        add_span(parser)
        parser.add_argument(
            "--folder",
            type=Path,
            help="An exported archive: its files are verified on their own, without the database.",
        )

    def handle(self, **options: Any) -> None:
        if not has_pyarrow():
            raise CommandError(f"{LACKS_PYARROW}.")
        start, end = self._span(options)
        folder: Path | None = options["folder"]
        if folder is not None and not folder.is_dir():
            raise CommandError(f"{folder} is no folder.")
        store: ArchiveStore = own_archive() if folder is None else DiskStore(folder)
        bad = 0
        none_yet = NONE_YET if folder is None else NO_COPY.format(folder=folder)
        days = archived_days(store, start, end, none_yet)
        if folder is None:
            # Retention begins with the oldest day, so that nothing is missing between two.
            sealed = [date.fromisoformat(each) for each in sealed_days()]
            days |= {each: [] for each in sealed if min(days) < each < (end or date.max) and each not in days}
        for each, paths in sorted(days.items()):
            try:
                verdict = verify_day(store, each, paths, has_database=folder is None)
            except OSError as error:
                raise CommandError(f"{each} cannot be read: {error}.") from None
            self._report(verdict)
            bad += bool(verdict.faults)
        if bad:
            raise CommandError(f"{bad} {'days do' if bad > 1 else 'day does'} not hold.")

    def _span(self, options: dict[str, Any]) -> tuple[date | None, date | None]:
        if options["day"] is None:
            return options["start"], options["end"]
        if options["start"] or options["end"]:
            raise CommandError("Give either --day, or --start and --end.")
        return options["day"], options["day"] + timedelta(days=1)

    def _report(self, verdict: DayVerdict) -> None:
        counts = ", ".join(f"{number:,} {name}" for name, number in verdict.counts.items())
        says = "does not hold" if verdict.faults else "holds"
        self.stdout.write(f"{verdict.day} {says}: {counts} proved.")
        for note in verdict.notes:
            self.stdout.write(f"  {note}")
        for fault in verdict.faults:
            self.stderr.write(f"  {fault}")
