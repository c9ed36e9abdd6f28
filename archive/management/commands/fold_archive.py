import os
from argparse import ArgumentParser
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from archive.belonging import NotOurs, adopt
from archive.folding.day_files import NotUsable
from archive.folding.fold import Busy, fold_what_is_due
from archive.journal import LACKS_PYARROW, has_pyarrow, journal_folder
from archive.stores import StoreFault, archive_store

NICE = 10


class Command(BaseCommand):
    help = (
        "Make the archive's files of finished days, and remove those that are too old. The engine does "
        "this each night; run it by hand to make up for missed days."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--adopt",
            action="store_true",
            help=(
                "First take over the archive for this installation: after a move, or if the "
                "installation to which it belongs no longer exists."
            ),
        )

    def run_from_argv(self, argv: list[str]) -> None:
        # Only here does the process belong to this command; `call_command` runs in another's. Units of an
        # earlier release forbid it.
        with suppress(PermissionError):
            os.nice(NICE)
        super().run_from_argv(argv)

    def handle(self, **options: Any) -> None:
        if not settings.ARCHIVE:
            raise CommandError("ARCHIVE=0: nothing is archived here.")
        if not has_pyarrow():
            raise CommandError(f"{LACKS_PYARROW}.")
        try:
            store = archive_store()
            if options["adopt"] and adopt(store):
                self.stdout.write(f"{store} belongs to this installation now.")
            made = fold_what_is_due(journal_folder(), store, datetime.now(UTC), settings.ARCHIVE_DAYS)
        except Busy:
            raise CommandError("Another process makes these files right now.") from None
        except NotOurs as error:
            raise CommandError(f"{error}. The journal stays.") from None
        except NotUsable as error:
            raise CommandError(f"{error} The journal stays.") from None
        except OSError as error:
            raise CommandError(f"{_why_not(error)} The journal stays.") from None
        self.stdout.write("\n".join(f"Archived {day}." for day in made) or "There was nothing to archive.")


def _why_not(error: OSError) -> str:
    if isinstance(error, StoreFault):
        return f"The files cannot be written: {str(error).rstrip('.')}."
    # A disk that is full does not say which one it is.
    at = error.filename or f"{journal_folder().path} or {settings.ARCHIVE_DIR}"
    return f"The files cannot be written to {at}: {(error.strerror or str(error)).rstrip('.')}."
