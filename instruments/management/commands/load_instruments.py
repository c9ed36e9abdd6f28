from __future__ import annotations

import getpass
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from instruments.resources import CalendarResource, InstrumentResource, TableResource
from instruments.services import BadRows, load
from instruments.sheets import BadSheet, read_sheet

SHIPPED = Path(__file__).resolve().parents[2] / "data"


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
                    take(CalendarResource, SHIPPED / "calendars.csv"),
                    take(InstrumentResource, SHIPPED / "instruments.csv"),
                ]
            else:
                counted = [take(InstrumentResource, file)]
        if verbosity:
            self.stdout.write("\n".join(counted))


def take(resource: type[TableResource], path: Path) -> str:
    try:
        sheet = read_sheet(path.read_bytes(), resource.columns())
        totals = load(resource, sheet, by=getpass.getuser()).totals
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}.") from None
    except BadSheet as error:
        raise CommandError(f"{path}: {error} Nothing was loaded.") from None
    except BadRows as error:
        raise CommandError("\n".join([f"{path}: nothing was loaded.", *error.problems])) from None
    counts = f"{totals['new']} added, {totals['update']} updated, {totals['skip']} unchanged"
    return f"{resource.Meta.model._meta.verbose_name_plural}: {counts}"
