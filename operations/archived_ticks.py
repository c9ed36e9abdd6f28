"""Whether ticks are archived, and the files of past days made."""

import os
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from django.conf import settings

from archive.belonging import NotOurs, check
from archive.layout import MANIFESTS
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
        yield _switched_off()
    elif all(wanted_kind(each) for each in Instrument.objects.filter(active=True)):
        yield ok(ABOUT, "No instrument has real prices, so there is nothing to archive.")
    elif not has_pyarrow():
        fix = "Install pyarrow (the extra `archive`) and start the engine again, or set ARCHIVE=0."
        yield warn(ABOUT, f"Ticks are not archived: {LACKS_PYARROW}.", fix)
    else:
        yield _files()


def _switched_off() -> Diagnosis:
    waiting = {segment.day for segment in journal_folder().segments()}
    if not waiting:
        return ok(ABOUT, "Ticks are not archived: ARCHIVE=0.")
    fix = f"Set ARCHIVE=1 and call `{command('fold_archive')}`, or remove {journal_folder().path}."
    return warn(ABOUT, f"ARCHIVE=0, and ticks since {min(waiting)} wait to be made into files.", fix)


def _files() -> Diagnosis:
    journal = journal_folder()
    folders = [journal.path]
    if settings.ARCHIVE_S3_URL is None:
        folders.append(Path(settings.ARCHIVE_DIR))
    for folder in folders:
        if why := why_not_written(folder):
            fix = "Make it writable for this user. What the disk did not take is lost, and said in manifests."
            return fail(ABOUT, f"Nothing can be written to {folder} ({why}): ticks are not archived.", fix)
    try:
        store = archive_store()
        check(store)
    except NotOurs as error:
        return fail(ABOUT, f"{error}.", "Until then no files are made, served or removed; the journal stays.")
    except OSError as error:
        return _unread(error)
    today = datetime.now(UTC).date()
    overdue = [segment.day for segment in journal.segments() if segment.day < today - OVERDUE]
    if overdue:
        fix = f"`{command('fold_archive')}` makes them, or says what is in the way."
        return warn(ABOUT, f"The files of {min(overdue)} are not made yet.", fix)
    try:
        days = len(store.listing(MANIFESTS))
    except OSError as error:
        return _unread(error)
    return ok(ABOUT, f"Ticks are archived; {days} days have their files.")


def _unread(error: OSError) -> Diagnosis:
    says = str(error).rstrip(".")
    return fail(
        ABOUT, f"The archive cannot be read: {says}.", "See ARCHIVE_DIR and its disk, or ARCHIVE_S3_URL."
    )


def why_not_written(folder: Path) -> str:
    """By writing: a right that a mode grants may be taken back by a mount. A folder that is not there yet is
    made in the next one above it. Empty if all is well."""
    there = next(each for each in (folder, *folder.parents) if each.exists())
    try:
        with tempfile.TemporaryFile(dir=there) as file:
            file.write(b"doctor")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return error.strerror or str(error)
    return ""
