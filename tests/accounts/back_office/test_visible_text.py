"""No page of the back office takes a character that nobody sees: text that staff type is read by others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db import models
from django.test import RequestFactory

import config.urls  # noqa: F401 - it registers the pages
from accounts.back_office.request_pages import DeclineForm
from accounts.models import TierRequest
from news.models import NewsItem
from signals_feed.admin import CancelForm
from signals_feed.models import Signal
from status.models import Incident

from .office import Office, add_to, address, text_of
from .rows import Rows

pytestmark = pytest.mark.django_db
MODELS = sorted(admin.site._registry, key=lambda model: model._meta.label)
INVISIBLE = ["\u202e", "\u200b", "\u2066", "\x07", "\u2028"]
VISIBLE = ["Größe 1\u00a0000", "👨\u200d👩\u200d👧", "می\u200cخواهم"]
SAYS = "of this text is invisible"


def request_of(office: Office) -> Any:
    request: Any = RequestFactory().get("/")
    request.user = office.user
    return request


def forms_of(office: Office, row: models.Model) -> Iterator[Any]:
    """Of a row that is there, with the forms of the rows within it."""
    request = request_of(office)
    page = admin.site._registry[type(row)]
    if page.has_change_permission(request, row):
        yield page.get_form(request, row, change=True)
        yield from (within.form for within, _ in page.get_formsets_with_inlines(request, row))


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label)
def test_no_text_of_a_row_takes_what_nobody_sees(
    rows: Rows, office: Office, model: type[models.Model]
) -> None:
    takes = [
        (name, ascii(letter))
        for form in forms_of(office, rows[model])
        for name, field in form.base_fields.items()
        if isinstance(field, forms.CharField) and not field.disabled
        for letter in INVISIBLE
        if is_taken(field, f"a{letter}b")
    ]
    assert takes == []


def is_taken(field: forms.Field, text: str) -> bool:
    try:
        field.clean(text)
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize("form", [CancelForm, DeclineForm])
def test_a_reason_is_text_that_is_seen_and_longer_texts_have_lines(
    office: Office, form: type[forms.Form]
) -> None:
    (field,) = form.base_fields.values()
    assert [text for text in INVISIBLE if is_taken(field, f"a{text}b")] == []
    assert [text for text in VISIBLE if not is_taken(field, text)] == []
    summary = admin.site._registry[NewsItem].get_form(request_of(office)).base_fields["summary"]
    assert is_taken(summary, "\n".join(VISIBLE) + "\r\n\tlast")


@pytest.mark.parametrize(
    ("model", "page", "field"),
    [
        (NewsItem, "add", "summary"),
        (Incident, "add", "notes-0-text"),
        (Signal, "cancel", "reason"),
        (TierRequest, "decline", "answer"),
    ],
)
def test_the_refusal_says_which_character_it_is(
    rows: Rows, office: Office, model: type[models.Model], page: str, field: str
) -> None:
    row = rows[model]
    where = add_to(model) if page == "add" else address(row, page, row.pk)
    notes = {"notes-TOTAL_FORMS": "1", "notes-INITIAL_FORMS": "0"}
    answer = office.post(where, answered="1", **notes, **{field: "Test \u202e abc"})
    assert f"Character 6 {SAYS} (U+202E). Remove it." in text_of(answer)
