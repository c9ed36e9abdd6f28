"""`load_instruments`: all rows or none, and every fault by line and field."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from instruments.models import Instrument, TradingCalendar
from instruments.saving import SHIPPED

pytestmark = [pytest.mark.django_db, pytest.mark.services]
HEADER, *ROWS = (SHIPPED / "instruments.csv").read_text().splitlines()
EURUSD = next(row for row in ROWS if row.startswith("EURUSD"))
COLUMNS = len(HEADER.split(","))
SYMBOLS = "Use upper-case letters, digits, dots, dashes and underscores, a letter or a digit first."


def load(*files: Path) -> str:
    out = io.StringIO()
    call_command("load_instruments", *files, stdout=out)
    return out.getvalue()


def table(tmp_path: Path, *rows: str, header: str = HEADER) -> Path:
    path = tmp_path / "mine.csv"
    path.write_text("\n".join((header, *rows)) + "\n")
    return path


def with_(field: str, value: str) -> str:
    """The row of EURUSD with one cell changed."""
    cells = dict(zip(HEADER.split(","), EURUSD.split(","), strict=True)) | {field: value}
    out = io.StringIO()
    csv.writer(out).writerow(cells.values())
    return out.getvalue().strip()


def faults(path: Path) -> list[str]:
    with pytest.raises(CommandError) as caught:
        load(path)
    return str(caught.value).splitlines()[1:]


def events() -> list[str]:
    return list(ControlEvent.objects.values_list("kind", flat=True))


@pytest.fixture
def shipped() -> None:
    load()
    ControlEvent.objects.all().delete()


def test_without_a_file_it_loads_what_is_shipped_and_again_changes_nothing() -> None:
    assert load() == (
        "trading calendars: 8 added, 0 updated, 0 unchanged\ninstruments: 24 added, 0 updated, 0 unchanged\n"
    )
    assert Instrument.objects.count() == len(ROWS)
    assert Instrument.objects.get(symbol="EURUSD").calendar.name == "forex"
    told = events()
    assert set(told) == {EventKind.INSTRUMENTS_CHANGED}
    assert "0 added, 0 updated, 24 unchanged" in load()
    assert events() == told


@pytest.mark.usefixtures("shipped")
def test_a_file_adds_and_updates(tmp_path: Path) -> None:
    new = EURUSD.replace("EURUSD", "EURSEK")
    output = load(table(tmp_path, new, with_("digits", "4"), ROWS[0]))
    assert output == "instruments: 1 added, 1 updated, 1 unchanged\n"
    assert Instrument.objects.get(symbol="EURUSD").digits == 4
    assert events() == [EventKind.INSTRUMENTS_CHANGED]


@pytest.mark.usefixtures("shipped")
def test_columns_may_come_in_any_order(tmp_path: Path) -> None:
    header, row = (",".join(reversed(line.split(","))) for line in (HEADER, EURUSD))
    assert load(table(tmp_path, row, header=header)) == "instruments: 0 added, 0 updated, 1 unchanged\n"


@pytest.mark.usefixtures("shipped")
def test_one_bad_row_loads_nothing(tmp_path: Path) -> None:
    good, bad = EURUSD.replace("EURUSD", "EURSEK"), with_("digits", "9")
    assert faults(table(tmp_path, good, bad)) == ["Line 3, digits: 8 at most."]
    assert not Instrument.objects.filter(symbol="EURSEK").exists()
    assert events() == []


def test_bad_instruments_leave_no_calendars_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table(tmp_path, with_("digits", "9")).rename(tmp_path / "instruments.csv")
    (tmp_path / "calendars.csv").write_bytes((SHIPPED / "calendars.csv").read_bytes())
    monkeypatch.setattr("instruments.management.commands.load_instruments.SHIPPED", tmp_path)
    with pytest.raises(CommandError):
        load()
    assert not TradingCalendar.objects.exists()


@pytest.mark.usefixtures("shipped")
@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("symbol", "eurusd", SYMBOLS),
        ("name", "", "This field cannot be blank."),
        ("name", "Euro\u202e", "Character 5 of this text is invisible (U+202E). Remove it."),
        ("type", "fx", "Value 'fx' is not a valid choice."),
        ("calendar", "mars", "There is no trading calendar “mars”."),
        ("pip_size", "", "This field cannot be null."),
        ("pip_size", "1_0", "“1_0” is not a plain number such as 0.0001."),
        ("pip_size", "1e-4", "“1e-4” is not a plain number such as 0.0001."),
        ("pip_size", "NaN", "“NaN” is not a plain number such as 0.0001."),
        ("pip_size", "٣", "“٣” is not a plain number such as 0.0001."),
        ("pip_size", "0.123456789", "Ensure that there are no more than 8 decimal places."),
        ("contract_size", "-1", "Must be above 0."),
        ("margin_rate", "5", "A share: 1 at most."),
        ("max_lot", "0.001", "Must not be below min_lot."),
        ("digits", "2.7", "“2.7” is not a whole number."),
        ("digits", "9" * 20, f"“{'9' * 20}” is too large: a whole number has at most 9 digits."),
        ("stale_after_s", "0", "Must be above 0."),
        ("active", "yes", "“yes” is neither true nor false."),
    ],
)
def test_a_fault_is_told_by_line_field_and_reason(
    tmp_path: Path, field: str, value: str, reason: str
) -> None:
    assert faults(table(tmp_path, with_(field, value))) == [f"Line 2, {field}: {reason}"]


@pytest.mark.usefixtures("shipped")
def test_lines_are_counted_as_an_editor_does_and_a_symbol_stands_once(tmp_path: Path) -> None:
    path = table(tmp_path, with_("name", "two\nlines"), "", with_("symbol", "x"))
    assert faults(path)[0].startswith("Line 5, symbol:")
    assert faults(table(tmp_path, EURUSD, EURUSD)) == ["Line 3, symbol: “EURUSD” is in the file twice."]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "missing: symbol"),
        (HEADER.replace("digits", "digit").encode(), "missing: digits; unknown: digit"),
        (f"{HEADER},symbol".encode(), "twice: symbol"),
        (f'"{HEADER}'.encode(), "Line 1: unexpected end of data."),
        (f"{HEADER}\n{EURUSD},1".encode(), f"Line 2 has {COLUMNS + 1} cells; {COLUMNS} are expected."),
        (f'{HEADER}\n"{EURUSD}'.encode(), "Line 2: unexpected end of data."),
        (f"{HEADER}\n{EURUSD}".replace("Euro", "Eur\0").encode(), "Line 2: a cell contains"),
        ("symbol,näme".encode("latin-1"), "not UTF-8"),
    ],
)
def test_what_is_no_such_table_is_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "mine.csv"
    path.write_bytes(content)
    with pytest.raises(CommandError, match="mine.csv: .*Nothing was loaded") as caught:
        load(path)
    assert reason in str(caught.value)
    with pytest.raises(CommandError, match="cannot be read: No such file"):
        load(tmp_path / "none.csv")
