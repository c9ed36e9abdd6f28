"""Whether ticks are archived, and the files of past days made."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from django.conf import settings

from archive.places import LACKS_PYARROW, has_pyarrow, journal_folder
from archive.stores import archive_store
from core.program.commands import command
from instruments.models import Instrument
from market.store import wanted_kind

from .doctor.diagnosis import Diagnosis, fail, ok, warn

ABOUT = "archive"
# The night after a day makes its files; one may be late.
OVERDUE = timedelta(days=2)


def check_archive() -> Iterator[Diagnosis]:
    if not settings.ARCHIVE:
        yield ok(ABOUT, "Ticks are not archived: ARCHIVE=0.")
    elif all(wanted_kind(each) for each in Instrument.objects.filter(active=True)):
        yield ok(ABOUT, "No instrument has real prices, so there is nothing to archive.")
    elif not has_pyarrow():
        fix = "Install pyarrow (the extra `archive`) and start the engine again, or set ARCHIVE=0."
        yield warn(ABOUT, f"Ticks are not archived: {LACKS_PYARROW}.", fix)
    else:
        yield _files()


def _files() -> Diagnosis:
    journal = journal_folder()
    for folder in (journal.path, Path(settings.ARCHIVE_DIR)):
        if folder.exists() and not os.access(folder, os.W_OK):
            fix = "Make it writable for this user. What the disk did not take is lost, and said in manifests."
            return fail(ABOUT, f"Nothing can be written to {folder}, so ticks are not archived.", fix)
    today = datetime.now(UTC).date()
    overdue = [segment.day for segment in journal.segments() if segment.day < today - OVERDUE]
    if overdue:
        fix = f"`{command('fold_archive')}` makes them, or says what is in the way."
        return warn(ABOUT, f"The files of {min(overdue)} are not made yet.", fix)
    try:
        days = len(archive_store().listing("manifests/"))
    except OSError as error:
        return fail(ABOUT, f"The archive cannot be read: {error}.", "See ARCHIVE_DIR, and its disk.")
    return ok(ABOUT, f"Ticks are archived; {days} days have their files.")
