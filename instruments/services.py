"""Acts on instruments and calendars: each tells every process in the same transaction."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db import transaction

from core.events.kinds import EventKind
from core.events.outbox import ControlEvent

from .models import Instrument, TradingCalendar
from .resources import TableResource
from .sheets import Sheet


class BadRows(ValueError):
    """Rows that cannot be taken; `problems` names line, field and reason of each. Nothing was loaded."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


@transaction.atomic
def save_instrument(instrument: Instrument, *, by: str) -> None:
    instrument.clean()
    instrument.save()
    announce(by)


@transaction.atomic
def save_calendar(calendar: TradingCalendar, *, by: str) -> None:
    calendar.save()
    announce(by)


@transaction.atomic
def load(resource: type[TableResource], sheet: Sheet, *, by: str) -> Any:
    """Take all rows of a table or none; the result counts what was new, updated and skipped."""
    result = resource().import_data(sheet, use_transactions=True, retain_instance_in_row_result=True)
    if problems := list(describe(result)):
        raise BadRows(problems)
    if result.totals["new"] or result.totals["update"]:
        announce(by)
    return result


def announce(by: str) -> None:
    ControlEvent.objects.publish(EventKind.INSTRUMENTS_CHANGED, by=by)


def describe(result: Any) -> Iterator[str]:
    for error in result.base_errors:
        yield str(error.error)
    for row in result.error_rows:
        yield from (f"Line {row.number}: {error.error}" for error in row.errors)
    for row in result.invalid_rows:
        for field, reasons in row.field_specific_errors.items():
            yield from (f"Line {row.number}, {field}: {reason}" for reason in reasons)
        yield from (f"Line {row.number}: {reason}" for reason in row.non_field_specific_errors)
