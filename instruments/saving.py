"""Writes instruments and calendars, one at a time or as a whole table. They are checked as in the forms, and
the control event is written in the same transaction."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db import models, transaction

from accounts.form_fields import refuse_invisible_in_lines
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent

from .models import Instrument, TradingCalendar, WithheldSource
from .sheets import NUMBER, SheetRow

SHIPPED = Path(__file__).resolve().parent / "data"
TableRow = Instrument | TradingCalendar
Calendars = Mapping[str, TradingCalendar]
BOOLEANS = {"true": True, "false": False, "1": True, "0": False}
# All of them fit into a column of the database.
MOST_DIGITS = 9
NEW, UPDATE, SKIP = "new", "update", "skip"


class Problem(NamedTuple):
    line: int
    field: str
    """Empty if it concerns the whole row."""
    reason: str

    def __str__(self) -> str:
        place = f"Line {self.line}, {self.field}" if self.field else f"Line {self.line}"
        return f"{place}: {self.reason}"


class BadRows(ValueError):
    """Rows that cannot be taken. Nothing was loaded."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


class RowChange(NamedTuple):
    kind: str
    row: TableRow
    before: list[str]
    after: list[str]


class Table:
    """Rows are found by their first column, checked as forms are, and written only if they differ."""

    def __init__(self, model: type[TableRow], columns: tuple[str, ...]) -> None:
        self.model, self.columns, self.key = model, columns, columns[0]

    def cells(self, row: TableRow) -> list[str]:
        return [write_cell(getattr(row, name)) for name in self.columns]

    def check(self, rows: Iterable[SheetRow]) -> list[RowChange]:
        """What each row would change; raises BadRows with all that is wrong."""
        changes, problems, seen, rows = list[RowChange](), list[Problem](), set[str](), list(rows)
        # Asked once and not for each of thousands of rows.
        keys = {cells[self.key] for _, cells in rows}
        known = self.model._default_manager.in_bulk(keys, field_name=self.key)
        calendars = {calendar.name: calendar for calendar in TradingCalendar.objects.all()}
        for line, cells in rows:
            try:
                if cells[self.key] in seen:
                    raise ValidationError({self.key: f"“{cells[self.key]}” is in the file twice."})
                seen.add(cells[self.key])
                changes.append(self._check(cells, known.get(cells[self.key]), calendars))
            except ValidationError as error:
                for field, reasons in error.message_dict.items():
                    name = "" if field == NON_FIELD_ERRORS else field
                    problems += [Problem(line, name, reason) for reason in reasons]
        if problems:
            raise BadRows(problems)
        return changes

    def _check(self, cells: dict[str, str], known: TableRow | None, calendars: Calendars) -> RowChange:
        before = self.cells(known) if known else [""] * len(self.columns)
        row = known or self.model()
        errors: dict[str, Any] = {}
        for name in self.columns:
            try:
                refuse_invisible_in_lines(cells[name])
                setattr(row, name, read_cell(self.model._meta.get_field(name), cells[name], calendars))
            except ValueError as error:
                errors[name] = [str(error)]
            except ValidationError as error:
                errors[name] = error.messages
        if known and not errors and self.cells(row) == before:
            return RowChange(SKIP, row, before, before)
        try:
            # Whether it is unique and has a calendar is known, and `clean` says more than the constraints.
            row.full_clean({*errors, "calendar"}, validate_unique=False, validate_constraints=False)
        except ValidationError as error:
            error.update_error_dict(errors)
        if errors:
            raise ValidationError(errors)
        return RowChange(UPDATE if known else NEW, row, before, self.cells(row))


def read_cell(field: Any, text: str, calendars: Calendars) -> Any:
    """Stricter than Django's own fields, which take 1_000 and 1e3 for numbers."""
    if not text and field.null:
        return None
    match field:
        case models.ForeignKey():
            if text not in calendars:
                raise ValueError(f"There is no trading calendar “{text}”.")
            return calendars[text]
        case models.DecimalField():
            if text and not NUMBER.fullmatch(text):
                raise ValueError(f"“{text}” is not a plain number such as 0.0001.")
            return Decimal(text) if text else None
        case models.IntegerField():
            return read_whole(text) if text else None
        case models.BooleanField():
            if text.lower() not in BOOLEANS:
                raise ValueError(f"“{text}” is neither true nor false.")
            return BOOLEANS[text.lower()]
    return text or field.get_default()


def read_whole(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"“{text}” is not a whole number.")
    if len(text.lstrip("0")) > MOST_DIGITS:
        raise ValueError(f"“{text}” is too large: a whole number has at most {MOST_DIGITS} digits.")
    return int(text)


def write_cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    return str(value).lower() if isinstance(value, bool) else str(value)


CALENDARS = Table(TradingCalendar, ("name", "timezone", "sessions", "holidays"))
INSTRUMENTS = Table(
    Instrument,
    (
        *("symbol", "name", "type", "calendar"),
        *("pip_size", "contract_size", "margin_rate", "min_lot", "max_lot", "digits"),
        *("volume_kind", "order_flow_source", "stale_after_s", "outlier_percent"),
        *("source", "fallback", "active"),
    ),
)


@transaction.atomic
def load(table: Table, rows: Iterable[SheetRow], *, by: str) -> list[RowChange]:
    """Loads all rows of a table or none."""
    changes = table.check(rows)
    new: list[Any] = [change.row for change in changes if change.kind == NEW]
    table.model._default_manager.bulk_create(new)
    for change in changes:
        if change.kind == UPDATE:
            change.row.save()
    if any(change.kind != SKIP for change in changes):
        announce(by)
    return changes


@transaction.atomic
def save(row: TableRow, *, by: str) -> None:
    row.clean()
    row.save()
    announce(by)


@transaction.atomic
def withhold(source: WithheldSource, *, by: str) -> None:
    """No process passes on its data two seconds later."""
    source.save()
    announce(by)


@transaction.atomic
def pass_on_again(sources: Iterable[WithheldSource], *, by: str) -> None:
    for source in sources:
        source.delete()
    announce(by)


def announce(by: str) -> None:
    ControlEvent.objects.publish(EventKind.INSTRUMENTS_CHANGED, by=by)
