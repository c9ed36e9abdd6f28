"""Instruments out to a spreadsheet and back in."""

from __future__ import annotations

import csv
import io
import re
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db.models import Model

from core.events.kinds import EventKind
from instruments.models import Instrument, TradingCalendar
from tests.accounts.back_office.office import Office, address, list_of, logged, published, said, text_of
from tests.factories import make_calendar, make_instrument, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.services]
IMPORT_BUTTON = re.compile(r"Import instruments\s*</button>")
PAYLOADS = (
    "=cmd|' /C calc'!A1",
    "+1+1",
    "-1+1",
    "@SUM(A1)",
    "\tx",
    "\rx",
    "'=1",
    "''@x",
    "＝1",
    "-",
    'say "hi", ok',
)


def exported(office: Office, model: type[Model]) -> str:
    answer = office.post(address(model, "export"), format="0")
    assert answer.headers["Content-Type"] == "text/csv"
    return bytes(answer.content).decode("utf-8-sig")


def cells(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline="")))


def upload(office: Office, model: type[Model], text: str) -> Any:
    file = SimpleUploadedFile("table.csv", text.encode())
    return office.post(address(model, "import"), import_file=file, format="0")


def confirm(office: Office, model: type[Model], preview: Any) -> Any:
    return office.post(address(model, "process_import"), **preview.context["confirm_form"].initial)


def take_in(office: Office, model: type[Model], text: str) -> None:
    confirm(office, model, upload(office, model, text))


def values() -> list[dict[str, Any]]:
    return [dict(row) for row in Instrument.objects.order_by("symbol").values()]


def test_what_was_exported_changes_nothing_when_imported(office: Office) -> None:
    for number, payload in enumerate(PAYLOADS):
        make_instrument(f"X{number}", name=payload)
    before, text = values(), exported(office, Instrument)
    take_in(office, Instrument, text)
    assert values() == before
    assert published() == []


def test_a_deleted_table_comes_back_as_it_was(office: Office) -> None:
    for number, payload in enumerate(PAYLOADS):
        make_instrument(f"X{number}", name=payload)
    before, text = values(), exported(office, Instrument)
    Instrument.objects.all().delete()
    take_in(office, Instrument, text)
    assert [row | {"id": 0} for row in values()] == [row | {"id": 0} for row in before]


def test_no_exported_cell_starts_a_formula(office: Office) -> None:
    for number, payload in enumerate(PAYLOADS):
        make_instrument(f"X{number}", name=payload)
    dangerous = [
        cell for row in cells(exported(office, Instrument)) for cell in row if cell[:1] in "=+-@\t\r＝"
    ]
    assert [cell for cell in dangerous if cell] == []


def test_an_import_is_shown_before_it_changes_anything(office: Office) -> None:
    make_instrument(name="<b>old</b>")
    page = text_of(upload(office, Instrument, exported(office, Instrument).replace("old", "new")))
    assert IMPORT_BUTTON.search(page)
    assert "<b>" not in page
    assert Instrument.objects.get().name == "<b>old</b>"
    assert published() == []


def test_the_pages_speak_of_what_they_import_and_export(office: Office) -> None:
    make_instrument()
    page = text_of(office.get(address(Instrument, "import")))
    assert "A CSV file with these columns: <code>symbol, name," in page
    assert "Preview" in page
    assert "Import instruments" in page
    unchanged = text_of(upload(office, Instrument, exported(office, Instrument)))
    assert not IMPORT_BUTTON.search(unchanged)
    assert "Download CSV" in text_of(office.get(address(TradingCalendar, "export")))
    assert "The file has no row below its header." in text_of(
        upload(office, Instrument, exported(office, Instrument).splitlines()[0])
    )


def test_each_step_of_an_import_leads_back(office: Office) -> None:
    make_instrument(name="An old name")
    first = text_of(office.get(address(Instrument, "import")))
    preview = text_of(upload(office, Instrument, exported(office, Instrument).replace("old", "new")))
    leads = [re.findall(r'<a href="([^"]+)"[^>]*>\s*Back\s*</a>', page) for page in (first, preview)]
    assert leads == [[list_of(Instrument)], [address(Instrument, "import")]]


def test_the_preview_marks_what_changes(office: Office) -> None:
    make_instrument(name="An old name")
    page = text_of(upload(office, Instrument, exported(office, Instrument).replace("old", "<new>")))
    assert "<span>An</span> <del>old</del> <ins>&lt;new&gt;</ins> <span>name</span>" in page


def test_the_preview_shows_changed_cells_of_changed_rows_alone(office: Office) -> None:
    make_instrument("EURUSD", name="An old name")
    make_instrument("GBPUSD", name="As it was")
    page = upload(office, Instrument, exported(office, Instrument).replace("old", "new"))
    preview = page.context["preview"]
    assert [(row.kind, row.key, [name for name, _ in row.cells]) for row in preview.rows] == [
        ("update", "EURUSD", ["name"])
    ]
    assert preview[1:] == (0, 1, 1)
    text = text_of(page).partition("<main")[2] or text_of(page)
    assert "0 new, 1 changed</strong>, 1 unchanged" in text
    assert "GBPUSD" not in text
    assert "As it was" not in text


def test_the_preview_of_a_new_row_has_its_filled_cells(office: Office) -> None:
    make_instrument("EURUSD", name="One")
    page = upload(office, Instrument, exported(office, Instrument).replace("EURUSD", "XXXUSD"))
    (row,) = page.context["preview"].rows
    assert (row.kind, row.key) == ("new", "XXXUSD")
    assert {"name", "type", "digits"} <= {name for name, _ in row.cells}
    assert "" not in {cell for _, cell in row.cells}


def test_a_file_without_a_change_says_so(office: Office) -> None:
    make_instrument("EURUSD")
    page = upload(office, Instrument, exported(office, Instrument))
    assert page.context["preview"].rows == []
    assert "The file says what is here already: nothing would change." in text_of(page)


def test_the_list_leads_to_both(office: Office) -> None:
    page = text_of(office.get(list_of(Instrument)))
    assert address(Instrument, "import") in page
    assert address(Instrument, "export") in page


def test_only_what_the_list_shows_is_exported(office: Office) -> None:
    make_instrument("EURUSD")
    make_instrument("GBPUSD")
    assert "CSV" in text_of(office.get(address(Instrument, "export")))
    answer = office.post(f"{address(Instrument, 'export')}?q=GBP")
    assert [row[0] for row in cells(bytes(answer.content).decode("utf-8-sig"))] == ["symbol", "GBPUSD"]


def test_an_import_tells_every_process_and_who_did_it(office: Office) -> None:
    eurusd = make_instrument(name="old")
    table = exported(office, Instrument)
    take_in(office, Instrument, table.replace("old", "new") + table.splitlines()[1].replace("EURUSD", "NEW"))
    assert published() == [(EventKind.INSTRUMENTS_CHANGED, "boss")]
    assert logged(eurusd) == [("boss", "Imported.")]
    assert logged(Instrument.objects.get(symbol="NEW")) == [("boss", "Imported.")]


def test_one_bad_row_stops_the_import_and_is_named(office: Office) -> None:
    make_instrument("AAA", name="two\nlines")
    make_instrument("BBB")
    table = exported(office, Instrument)
    page = text_of(upload(office, Instrument, table.replace("two", "2").replace("BBB,", "bbb,")))
    assert "Line 4, <strong>symbol</strong>: Use upper-case letters" in page
    assert not IMPORT_BUTTON.search(page)


def test_a_row_that_went_bad_after_the_preview_stops_the_import(office: Office) -> None:
    make_instrument(name="old")
    preview = upload(office, Instrument, exported(office, Instrument).replace("old", "new"))
    TradingCalendar.objects.update(name="renamed")
    answer = confirm(office, Instrument, preview)
    assert said(answer) == ["Nothing was imported. Line 2, calendar: There is no trading calendar “always”."]
    assert Instrument.objects.get().name == "old"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("symbol,name\n", "missing: type"),
        ("", "The submitted file is empty."),
        ("symbol;name;type\n", "separated by semicolons"),
        ("\xff", "columns must be"),
    ],
)
def test_what_is_no_such_table_is_refused_in_words(office: Office, text: str, reason: str) -> None:
    assert reason in text_of(upload(office, Instrument, text))


def test_a_file_that_is_not_utf8_is_refused_in_words(office: Office) -> None:
    file = SimpleUploadedFile("table.csv", "symbol,näme".encode("latin-1"))
    assert "not UTF-8" in text_of(office.post(address(Instrument, "import"), import_file=file, format="0"))


def test_a_huge_file_is_refused_unread(office: Office) -> None:
    assert "larger than 2,000,000 bytes" in text_of(upload(office, Instrument, "x" * 2_000_001))


def test_a_confirmation_of_nothing_held_is_refused_in_words(office: Office) -> None:
    fields = {"import_file_name": "passwd", "original_file_name": "passwd", "format": "0", "resource": ""}
    assert said(office.post(address(Instrument, "process_import"), **fields)) == [
        "Nothing was imported. The uploaded file is no longer held. Choose it again."
    ]


def test_calendars_go_out_and_come_back(office: Office) -> None:
    make_calendar("stock", "Mon-Fri 09:30-16:00", timezone="America/New_York", holidays="2026-12-25")
    text = exported(office, TradingCalendar)
    TradingCalendar.objects.all().delete()
    take_in(office, TradingCalendar, text)
    assert TradingCalendar.objects.get().holidays == "2026-12-25"
    assert published() == [(EventKind.INSTRUMENTS_CHANGED, "boss")]


def test_a_reader_may_export_but_not_import() -> None:
    reader = make_user(is_staff=True)
    reader.user_permissions.add(Permission.objects.get(codename="view_instrument"))
    office = Office(reader)
    make_instrument()
    assert "EURUSD" in exported(office, Instrument)
    assert upload(office, Instrument, "").status_code == 403
    assert office.post(address(Instrument, "process_import")).status_code == 403
