"""The back office in Chromium: one theme with the site, and a preview of an import that fits every window."""

from __future__ import annotations

import csv
import io

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group
from playwright.sync_api import Page, expect

from instruments.models import Instrument
from signals_feed.ledger.ledger import LedgerEntry
from tests.accounts.back_office.office import Office, address, change, list_of
from tests.client import Server
from tests.factories import make_instrument, make_user
from tests.signals_feed.published_signals import make_published

from .conftest import OpenPage
from .looks import violations

# unfold's frame has no main landmark, so that nothing is inside one.
UNFOLDS = ("landmark-one-main:", "region:")
GROUND = "getComputedStyle(document.body).backgroundColor"
LIGHT, DARK = "rgb(245, 247, 249)", "rgb(13, 18, 23)"


@pytest.fixture
def office(server: Server) -> Office:
    """Before the browser: while Playwright runs, this thread may not use the ORM."""
    return Office(make_user("boss", is_staff=True, is_superuser=True))


@pytest.fixture
def table(office: Office) -> bytes:
    """An import that changes one instrument of two and adds a third."""
    for symbol in ("EURUSD", "GBPUSD"):
        make_instrument(symbol, name="The first name of an instrument")
    exported = office.post(address(Instrument, "export"), format="0")
    rows = list(csv.reader(io.StringIO(bytes(exported.content).decode("utf-8-sig"), newline="")))
    changed = [cell.replace("first", "second") for cell in rows[1]]
    added = [cell.replace("EURUSD", "XAUUSD") for cell in rows[1]]
    made = io.StringIO(newline="")
    csv.writer(made).writerows([rows[0], changed, rows[2], added])
    return made.getvalue().encode()


def enter(open_page: OpenPage, server: Server, office: Office, scheme: str, width: int) -> Page:
    page = open_page("/healthz", color_scheme=scheme, viewport={"width": width, "height": 900})
    session = str(office.client.cookies["sessionid"].value)
    page.context.add_cookies([{"name": "sessionid", "value": session, "url": server.url}])
    return page


def test_theme_is_one_choice_with_the_site(server: Server, office: Office, open_page: OpenPage) -> None:
    page = enter(open_page, server, office, "light", 1440)
    page.goto("/docs")
    page.evaluate("localStorage.setItem('tickwire-theme', 'dark')")
    page.goto("/admin/")
    expect(page.locator("html.dark")).to_have_count(1)
    assert page.evaluate(GROUND) == DARK
    page.evaluate("Alpine.$data(document.documentElement).switchTheme('light')")
    expect(page.locator("html.dark")).to_have_count(0)
    assert page.evaluate(GROUND) == LIGHT
    page.goto("/docs")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    assert page.evaluate(GROUND) == LIGHT
    assert page.evaluate("document.fonts.check('16px Inter')")


@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 360)])
def test_preview_of_an_import_fits_and_shows_what_changes(
    server: Server, office: Office, table: bytes, open_page: OpenPage, scheme: str, width: int
) -> None:
    page = enter(open_page, server, office, scheme, width)
    page.goto(address(Instrument, "import"))
    file = {"name": "table.csv", "mimeType": "text/csv", "buffer": table}
    page.locator("input[type=file]").set_input_files(file)  # type: ignore[arg-type]
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("1 new, 1 changed")).to_be_visible()
    rows = page.locator(".import-preview > li")
    expect(rows).to_have_count(2)
    assert [row.locator("strong").inner_text() for row in rows.all()] == ["EURUSD", "XAUUSD"]
    assert rows.nth(0).locator("dt").all_inner_texts() == ["name"]
    assert page.evaluate("document.documentElement.scrollWidth") == width
    boxes = [box for box in (row.bounding_box() for row in rows.all()) if box]
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= width for box in boxes)
    assert boxes[0]["y"] + boxes[0]["height"] <= boxes[1]["y"] + 1
    assert [each for each in violations(page) if not each.startswith(UNFOLDS)] == []
    page.get_by_role("button", name="Import instruments").click()
    expect(page.get_by_text("The instruments are imported: 1 new, 1 changed")).to_be_visible()


LABELS = """() => [...document.querySelectorAll("#result_list td[data-label]")]
  .map((cell) => getComputedStyle(cell, "::before"))
  .map(({ content, textTransform }) => `${content.slice(1, -1)} ${textTransform}`)"""


def test_labels_of_a_narrow_list_are_in_sentence_case(
    server: Server, office: Office, table: bytes, open_page: OpenPage
) -> None:
    page = enter(open_page, server, office, "light", 360)
    page.goto("/admin/instruments/instrument/")
    labels = set(page.evaluate(LABELS))
    assert {"Name none", "Type none", "Pip size none", "Digits none"} <= labels


# Text that is wider or higher than the box that shows it.
CUT = """() => [...document.querySelectorAll("#result_list :is(td, th)[data-label], .readonly")]
  .filter((box) => box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1)
  .map((box) => box.textContent.trim().slice(0, 40))"""


@pytest.fixture
def long_values(office: Office) -> list[str]:
    """Pages with hashes, canonical JSON and an act of many words."""
    make_published()
    role = Group.objects.get(name="Role: curator").pk
    fields = {"username": "ada", "email": "ada@tickwire.test", "groups": role, "is_staff": "on"}
    office.post(change(make_user("ada")), **fields, may_publish="on", is_active="on")
    return [list_of(LedgerEntry), change(LedgerEntry.objects.get()), list_of(LogEntry)]


def test_long_values_are_broken_and_not_cut(
    server: Server, office: Office, long_values: list[str], open_page: OpenPage
) -> None:
    page = enter(open_page, server, office, "light", 360)
    for each in long_values:
        page.goto(each)
        expect(page.locator("#result_list, .readonly").first).to_be_visible()
        assert page.evaluate(CUT) == []
        assert page.evaluate("document.documentElement.scrollWidth") == 360
