from argparse import ArgumentParser
from collections import Counter
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from core.program import operator
from instruments.saving import CALENDARS, INSTRUMENTS, NEW, SHIPPED, SKIP, UPDATE, BadRows, Table, load
from instruments.sheets import BadSheet, read_sheet


class Command(BaseCommand):
    help = "Load instruments from a CSV file, or those that are shipped, with their trading calendars."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "file",
            nargs="?",
            type=Path,
            help=f"A CSV file with the columns of {SHIPPED / 'instruments.csv'}.",
        )

    def handle(self, *, file: Path | None, verbosity: int, **options: Any) -> None:
        with transaction.atomic():
            if file is None:
                counted = [
                    take(CALENDARS, SHIPPED / "calendars.csv"),
                    take(INSTRUMENTS, SHIPPED / "instruments.csv"),
                ]
            else:
                counted = [take(INSTRUMENTS, file)]
        if verbosity:
            self.stdout.write("\n".join(counted))


def take(table: Table, path: Path) -> str:
    try:
        rows = read_sheet(path.read_bytes(), table.columns)
        kinds = Counter(change.kind for change in load(table, rows, by=operator()))
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}.") from None
    except BadSheet as error:
        raise CommandError(f"{path}: {error} Nothing was loaded.") from None
    except BadRows as error:
        raise CommandError("\n".join([f"{path}: nothing was loaded.", str(error)])) from None
    counts = f"{kinds[NEW]} added, {kinds[UPDATE]} updated, {kinds[SKIP]} unchanged"
    return f"{table.model._meta.verbose_name_plural}: {counts}"
