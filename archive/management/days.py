"""Which days of the archive a command is about."""

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Collection
from datetime import date

from django.core.management.base import CommandError

from archive.layout import MANIFESTS, parse
from archive.stores import ArchiveStore, StoreFault, archive_store


def day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ArgumentTypeError(f"{text} is no day: write 2026-11-01") from None


def add_span(parser: ArgumentParser) -> None:
    parser.add_argument("--start", type=day, help="The first day, such as 2026-11-01 (UTC).")
    parser.add_argument("--end", type=day, help="The day after the last.")


def own_archive() -> ArchiveStore:
    try:
        return archive_store()
    except StoreFault as error:
        raise CommandError(str(error)) from None


def archived_days(store: ArchiveStore, start: date | None, end: date | None) -> list[date]:
    """Those that have a manifest; an error where there is none to do anything with."""
    try:
        every = [parse(path).day for path in store.listing(MANIFESTS)]
    except OSError as error:
        raise CommandError(f"The archive cannot be read: {error}.") from None
    found = [each for each in every if (not start or each >= start) and (not end or each < end)]
    if not found:
        raise CommandError(_why_none(every))
    return found


def _why_none(every: Collection[date]) -> str:
    if not every:
        return "The archive has no day yet: the first one is made after midnight UTC."
    return f"The archive has no day in this span. Its days are from {min(every)} to {max(every)}."
