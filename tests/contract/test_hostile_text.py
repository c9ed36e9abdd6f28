"""Sixty texts that would be executed somewhere, typed into the back office: stored, answered and shown as
text. tests/browser shows in Chromium that nothing of it runs."""

from __future__ import annotations

from html import escape

import pytest
from django.db.models import Model
from django.test import Client

from accounts.models import ApiKey, User
from instruments.models import Instrument
from news.models import NewsItem
from signals_feed.models import Signal
from tests.accounts.back_office.office import Office, list_of, text_of
from tests.client import Api, Server
from tests.factories import make_user
from tests.hostile.rows import (
    LABELS,
    USERNAME,
    USERNAMES,
    Typed,
    edit_pages,
    exported,
    type_everywhere,
)
from tests.hostile.texts import HTML, PAYLOADS, SCRIPTS, hostile_in

pytestmark = pytest.mark.served

STARTS_A_FORMULA = tuple("=+-@\t\r")
SHOWN: dict[type[Model], tuple[str, ...]] = {
    NewsItem: LABELS,
    Instrument: PAYLOADS,
    Signal: USERNAMES,
    ApiKey: LABELS,
    User: USERNAMES,
}


@pytest.fixture(scope="module")
def office(shared_server: Server) -> Office:
    return Office(make_user("boss", is_staff=True, is_superuser=True))


@pytest.fixture(scope="module", autouse=True)
def typed(office: Office) -> Typed:
    return type_everywhere(office)


def test_there_are_sixty_and_what_is_not_escaped_is_seen() -> None:
    assert len(set(PAYLOADS)) == 60
    assert len(hostile_in("".join(f"<p>{payload}</p>" for payload in HTML))) >= len(HTML) - 2
    assert hostile_in("".join(f'<p title="{payload}">' for payload in SCRIPTS)) != []


def test_what_is_typed_is_stored_as_it_is() -> None:
    assert tuple(NewsItem.objects.order_by("pk").values_list("title", flat=True)) == LABELS
    assert tuple(Instrument.objects.order_by("symbol").values_list("name", flat=True)) == PAYLOADS
    assert set(ApiKey.objects.values_list("name", flat=True)) >= set(LABELS)


def test_a_username_is_refused_unless_it_is_made_of_letters(typed: Typed) -> None:
    assert list(typed.refused) == [name for name in USERNAMES if not USERNAME.fullmatch(name)]
    assert len(typed.refused) > 50


def test_json_answers_with_the_same_text_and_is_never_taken_for_a_page(shared: Api) -> None:
    for path, name, expected in (
        ("/api/news?limit=500", "title", LABELS),
        ("/api/symbols", "name", PAYLOADS),
        ("/api/signals?limit=500", "user", USERNAMES),
    ):
        answer = shared.ask(path)
        (items,) = (value for value in answer.json().values() if isinstance(value, list))
        assert sorted(item[name] for item in items) == sorted(expected)
        assert answer.headers["Content-Type"] == "application/json"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("model", SHOWN, ids=lambda model: model.__name__)
def test_a_list_of_the_back_office_shows_text(office: Office, model: type[Model]) -> None:
    assert_text(text_of(office.get(f"{list_of(model)}?all=")), SHOWN[model])


def assert_text(page: str, texts: tuple[str, ...]) -> None:
    """Each stands there escaped, and nothing of them became a part of the page."""
    assert [text for text in texts if escape(text) not in page] == []
    assert hostile_in(page) == []


def test_a_form_of_the_back_office_shows_text(office: Office) -> None:
    pages = [text_of(office.get(page)) for page in edit_pages()]
    assert len(pages) >= 8
    assert [hostile_in(page) for page in pages] == [[]] * len(pages)


def test_the_settings_panel_shows_text(typed: Typed) -> None:
    pages = []
    for owner in typed.owners:
        client = Client()
        client.force_login(owner)
        pages.append(client.get("/settings/keys").text)
    assert_text("".join(pages), LABELS)


def test_no_cell_of_an_export_starts_a_formula(office: Office) -> None:
    cells = [row["name"] for row in exported(office)]
    guarded = {text for text in PAYLOADS if text.startswith(STARTS_A_FORMULA)}
    assert len(guarded) >= 8
    assert {f"'{text}" for text in guarded} <= set(cells)
    assert [cell for cell in cells if cell.startswith(STARTS_A_FORMULA)] == []


def test_no_text_changes_what_the_database_is_asked(office: Office) -> None:
    page = text_of(office.get(f"{list_of(NewsItem)}?q=%27+OR+%271%27%3D%271"))
    assert page.count('name="_selected_action"') == 1
