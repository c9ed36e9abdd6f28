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


def upload(office: Office, model: type[Model], text: str | bytes) -> Any:
    file = SimpleUploadedFile("table.csv", text if isinstance(text, bytes) else text.encode())
    return office.post(address(model, "import"), import_file=file, format="0")


def confirm(office: Office, model: type[Model], preview: Any) -> Any:
    return office.post(address(model, "process_import"), **preview.context["confirm_form"].initial)


def take_in(office: Office, model: type[Model], text: str) -> None:
    confirm(office, model, upload(office, model, text))


def values() -> list[dict[str, Any]]:
    return [dict(row) for row in Instrument.objects.order_by("symbol").values()]


@pytest.fixture
def odd_names() -> None:
    for number, payload in enumerate(PAYLOADS):
        make_instrument(f"X{number}", name=payload)


@pytest.mark.usefixtures("odd_names")
def test_what_was_exported_changes_nothing_and_brings_back_what_was_deleted(office: Office) -> None:
    before, text = values(), exported(office, Instrument)
    take_in(office, Instrument, text)
    assert values() == before
    assert published() == []
    Instrument.objects.all().delete()
    take_in(office, Instrument, text)
    assert [row | {"id": 0} for row in values()] == [row | {"id": 0} for row in before]


@pytest.mark.usefixtures("odd_names")
def test_no_exported_cell_starts_a_formula(office: Office) -> None:
    written = [cell for row in cells(exported(office, Instrument)) for cell in row if cell]
    assert [cell for cell in written if cell[0] in "=+-@\t\r＝"] == []


def test_an_import_is_shown_before_it_changes_anything_and_then_tells_who_did_it(office: Office) -> None:
    make_instrument("EURUSD", name="An <b>old</b> name")
    make_instrument("GBPUSD", name="As it was")
    text = exported(office, Instrument).replace("old", "<new>")
    answer = upload(office, Instrument, text + text.splitlines()[1].replace("EURUSD", "XXXUSD"))
    changed, new = answer.context["preview"].rows
    assert answer.context["preview"][1:] == (1, 1, 1)
    assert (changed.kind, changed.key, [name for name, _ in changed.cells]) == ("update", "EURUSD", ["name"])
    assert (new.kind, new.key) == ("new", "XXXUSD")
    assert {"name", "type", "digits"} <= {name for name, _ in new.cells}
    assert "" not in {cell for _, cell in new.cells}
    page = text_of(answer)
    assert IMPORT_BUTTON.search(page)
    assert "<ins>&lt;b&gt;&lt;new&gt;&lt;/b&gt;</ins> <span>name</span>" in page
    assert "<b>" not in page
    assert "GBPUSD" not in page
    eurusd = Instrument.objects.get(symbol="EURUSD")
    assert (eurusd.name, published()) == ("An <b>old</b> name", [])
    confirm(office, Instrument, answer)
    assert published() == [(EventKind.INSTRUMENTS_CHANGED, "boss")]
    for symbol in ("EURUSD", "XXXUSD"):
        assert logged(Instrument.objects.get(symbol=symbol)) == [("boss", "Imported.")]


def test_each_page_leads_to_the_next_and_back(office: Office) -> None:
    make_instrument(name="An old name")
    the_list = text_of(office.get(list_of(Instrument)))
    assert address(Instrument, "import") in the_list
    assert address(Instrument, "export") in the_list
    first = text_of(office.get(address(Instrument, "import")))
    assert "A CSV file with these columns: <code>symbol, name," in first
    preview = text_of(upload(office, Instrument, exported(office, Instrument).replace("old", "new")))
    leads = [re.findall(r'<a href="([^"]+)"[^>]*>\s*Back\s*</a>', page) for page in (first, preview)]
    assert leads == [[list_of(Instrument)], [address(Instrument, "import")]]


def test_a_file_without_a_change_offers_no_import(office: Office) -> None:
    make_instrument("EURUSD")
    text = exported(office, Instrument)
    unchanged, empty = (upload(office, Instrument, file) for file in (text, text.splitlines()[0]))
    assert unchanged.context["preview"].rows == []
    assert not IMPORT_BUTTON.search(text_of(unchanged))
    assert "The file has no row below its header." in text_of(empty)


def test_only_what_the_list_shows_is_exported(office: Office) -> None:
    make_instrument("EURUSD")
    make_instrument("GBPUSD")
    assert "Download CSV" in text_of(office.get(address(Instrument, "export")))
    answer = office.post(f"{address(Instrument, 'export')}?q=GBP")
    assert [row[0] for row in cells(bytes(answer.content).decode("utf-8-sig"))] == ["symbol", "GBPUSD"]


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
    ("content", "reason"),
    [
        (b"symbol,name\n", "missing: type"),
        (b"", "The submitted file is empty."),
        (b"symbol;name;type\n", "separated by semicolons"),
        ("\xff".encode(), "columns must be"),
        ("symbol,näme".encode("latin-1"), "not UTF-8"),
        (b"x" * 2_000_001, "larger than 2,000,000 bytes"),
    ],
    ids=["columns", "empty", "semicolons", "a word", "latin-1", "huge"],
)
def test_what_is_no_such_table_is_refused_in_words(office: Office, content: bytes, reason: str) -> None:
    assert reason in text_of(upload(office, Instrument, content))


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
