import os
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from archive.folding.work import Busy, fold_what_is_due
from archive.manifests import BadManifest
from archive.places import LACKS_PYARROW, has_pyarrow, journal_folder
from archive.stores import archive_store

NICE = 10


class Command(BaseCommand):
    help = (
        "Make the archive's files of the days that are over, and drop those that are too old. The engine "
        "runs this each night; by hand it does what was missed."
    )

    def handle(self, **options: Any) -> None:
        if not settings.ARCHIVE:
            raise CommandError("ARCHIVE=0: nothing is archived here.")
        if not has_pyarrow():
            raise CommandError(f"{LACKS_PYARROW}.")
        os.nice(NICE)
        try:
            made = fold_what_is_due(
                journal_folder(), archive_store(), datetime.now(UTC), settings.ARCHIVE_DAYS
            )
        except Busy:
            raise CommandError("Another process makes these files right now.") from None
        except OSError as error:
            raise CommandError(f"The files cannot be written: {error}. The journal stays.") from None
        except BadManifest as error:
            raise CommandError(
                f"What is stored cannot be read: {error}. Move it away and try again. The journal stays."
            ) from None
        self.stdout.write("\n".join(f"Archived {day}." for day in made) or "No day was due.")
