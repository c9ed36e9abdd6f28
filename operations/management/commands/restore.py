from argparse import ArgumentParser
from contextlib import closing
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from operations.copying.archive import ArchiveReader
from operations.copying.copies import DESPITE_LEDGER, refuse_if_in_use, restore, warnings
from operations.copying.databases import faults_as_sentences, open_default


class Command(BaseCommand):
    help = (
        "Put a backup into the database: into an empty one, or with --replace in place of the present data. "
        "Nothing may run on it. An older backup is migrated to this version. If it is interrupted, repeat it."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument(
            "--replace", action="store_true", help="Delete everything that is in the database first."
        )
        parser.add_argument(
            DESPITE_LEDGER, action="store_true", help="Finish even if the ledger does not verify."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        with faults_as_sentences():
            self.restore(
                options["file"], replace=options["replace"], despite_ledger=options["despite_ledger"]
            )

    def restore(self, path: Path, **options: bool) -> None:
        with closing(ArchiveReader(path)) as backup:
            backup.verify()
            with closing(open_default(create=True)) as store:
                self.stdout.write(f"The database is {store.place}.")
                refuse_if_in_use(store, "the database", self.stdout.write)
                restore(backup, store, **options, say=self.stdout.write)
        for warning in warnings(backup.manifest):
            self.stdout.write(warning)
