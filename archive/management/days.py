"""Which days of the archive a command is about."""

from argparse import ArgumentParser, ArgumentTypeError
from collections import defaultdict
from collections.abc import Collection
from datetime import date

from django.core.management.base import CommandError

from archive.belonging import check
from archive.manifests import parse
from archive.stores import ArchiveStore, archive_store

NONE_YET = "The archive has no day yet: the first one with real prices is made after midnight UTC."


def day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ArgumentTypeError(f"{text} is not a day: write 2026-11-01") from None


def add_span(parser: ArgumentParser) -> None:
    parser.add_argument("--start", type=day, help="The first day, such as 2026-11-01 (UTC).")
    parser.add_argument("--end", type=day, help="The day after the last.")


def own_archive() -> ArchiveStore:
    try:
        store = archive_store()
        check(store)
    except OSError as error:
        raise CommandError(f"{str(error).rstrip('.')}.") from None
    return store


def archived_days(
    store: ArchiveStore, start: date | None, end: date | None, none_yet: str = NONE_YET
) -> dict[date, list[str]]:
    """Each day with its files, in order, with a manifest or without; an error if there are none."""
    every: dict[date, list[str]] = defaultdict(list)
    try:
        for path in store.listing():
            every[parse(path).day].append(path)
    except OSError as error:
        raise CommandError(f"The archive cannot be read: {error}.") from None
    days = [each for each in sorted(every) if (not start or each >= start) and (not end or each < end)]
    if not days:
        raise CommandError(_why_none(every) if every else none_yet)
    return {each: every[each] for each in days}


def _why_none(every: Collection[date]) -> str:
    return f"The archive has no day in this span. Its days are from {min(every)} to {max(every)}."
