from argparse import ArgumentParser
from contextlib import closing
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import Error

from operations.copying.archive import ArchiveReader, check_place
from operations.copying.copies import back_up, default_file, write_secrets
from operations.copying.databases import faults_as_sentences, open_default
from operations.models import LastBackup


class Command(BaseCommand):
    help = (
        "Write the whole database into one file, from one moment of it, while the service goes on. The file "
        "is read again before this ends. It has no sessions and no secret of the installation: without "
        "KEY_PEPPER its API keys and second factors are void, so keep that too (--with-secrets)."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "file", nargs="?", type=Path, help="Where to. Default: backups/tickwire-TIME.zip in VAR_DIR."
        )
        parser.add_argument(
            "--with-secrets",
            action="store_true",
            help="Also write SECRET_KEY and KEY_PEPPER to FILE.secrets. Keep that file elsewhere.",
        )
        parser.add_argument(
            "--verify", action="store_true", help="Write nothing: read FILE and say whether it is whole."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        with faults_as_sentences():
            if options["verify"]:
                self.verify(options["file"])
            else:
                self.back_up(options["file"] or default_file(), with_secrets=options["with_secrets"])

    def verify(self, path: Path | None) -> None:
        if path is None:
            raise CommandError("Name the file: backup --verify FILE.")
        with closing(ArchiveReader(path)) as reader:
            reader.verify()
            manifest = reader.manifest
        position, head = manifest.ledger
        self.stdout.write(
            f"{path} is whole: {manifest.rows:,} rows of {manifest.made_at:%Y-%m-%d %H:%M:%S} UTC."
            f" Head of the ledger: {position}:{head}"
        )

    def back_up(self, path: Path, *, with_secrets: bool) -> None:
        secrets = Path(f"{path}.secrets")
        if with_secrets:
            check_place(secrets)
        with closing(open_default()) as store:
            self.stdout.write(f"The database is {store.place}.")
            manifest = back_up(store, path, self.stdout.write)
        position, head = manifest.ledger
        self.stdout.write(f"{manifest.rows:,} rows are in {path}, which was read again and is whole.")
        self.stdout.write(f"Head of the ledger: {position}:{head}")
        self.note()
        if with_secrets:
            write_secrets(secrets)
            self.stdout.write(f"The secrets are in {secrets}. Keep them apart from the backup.")
        else:
            self.stdout.write(
                "KEY_PEPPER is not in it, and without it API keys and second factors are void. Keep it too."
            )

    def note(self) -> None:
        """For the metrics and `doctor`. Before a migration, or on a standby, it cannot be written."""
        try:
            LastBackup.objects.note()
        except Error as error:
            reason = str(error).strip().splitlines()[0].rstrip(".")
            self.stderr.write(
                f"The backup was made, but the database could not note it: {reason}. The metrics and `doctor`"
                " go on showing the previous one."
            )
