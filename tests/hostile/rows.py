"""Hostile text typed into the forms of the back office: in titles, names, labels and usernames."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from django.contrib import admin
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import RequestFactory

from accounts.back_office.key_pages import IssueApiKeyForm
from accounts.keys.issuing import MAX_USABLE_KEYS, issue_key
from accounts.models import User
from instruments.models import Instrument
from instruments.sheets import write_sheet
from news.models import NewsItem
from tests.accounts.back_office.office import Office, add_to, address, change, text_of
from tests.factories import NOON, make_account, make_instrument, make_signal, make_user

from .texts import PAYLOADS

USERNAME = re.compile(r"[\w.@+-]+")
PUBLISHED = {"published_at_0": "2026-11-18", "published_at_1": "12:00:00"}
FIRST_SYMBOL = "HOSTILE00"
# Forms take away the space around a text.
STRIPPED = tuple(payload.strip() for payload in PAYLOADS)
# A label or a title is one line of printable characters.
LABELS = tuple(text for text in STRIPPED if text.isprintable())
# A table takes what can be seen; the others are written past it, as before it looked.
INVISIBLE = tuple(text for text in PAYLOADS if "\u2028" in text)
USERNAMES = tuple(unicodedata.normalize("NFKC", text) for text in STRIPPED)


class Typed(NamedTuple):
    owners: Sequence[User]
    """Of the keys, who see their labels in the settings panel."""
    refused: Sequence[str]
    """Usernames that the form did not take."""


def type_everywhere(office: Office) -> Typed:
    type_titles(office)
    type_instrument_names(office)
    return Typed(list(type_key_labels()), list(type_usernames(office)))


def type_titles(office: Office) -> None:
    for payload in PAYLOADS:
        fields = {"title": payload, "category": "forex", "sentiment_score": "0.4", **PUBLISHED}
        expected = 302 if payload.strip() in LABELS else 200
        assert office.post(add_to(NewsItem), **fields).status_code == expected, payload
    office.act("publish_chosen", *NewsItem.objects.all())


def type_instrument_names(office: Office) -> None:
    """All in one table, because each form takes a moment."""
    make_instrument(FIRST_SYMBOL)
    (row,) = exported(office)
    rows = [
        row | {"symbol": f"HOSTILE{number:02}", "name": payload} for number, payload in enumerate(PAYLOADS)
    ]
    refused = preview_of(office, rows)
    assert text_of(refused).count("of this text is invisible") == len(INVISIBLE)
    preview = preview_of(office, [each for each in rows if each["name"] not in INVISIBLE])
    office.post(address(Instrument, "process_import"), **preview.context["confirm_form"].initial)
    for each in rows:
        if each["name"] in INVISIBLE:
            make_instrument(each["symbol"], name=each["name"])


def preview_of(office: Office, rows: list[dict[str, str]]) -> Any:
    text = write_sheet(list(rows[0]), [list(each.values()) for each in rows])
    file = SimpleUploadedFile("table.csv", text.encode())
    return office.post(address(Instrument, "import"), import_file=file, format="0")


def exported(office: Office) -> list[dict[str, str]]:
    answer = office.post(address(Instrument, "export"), format="0")
    return list(csv.DictReader(io.StringIO(bytes(answer.content).decode("utf-8-sig"), newline="")))


def type_key_labels() -> Iterator[User]:
    account = make_account()
    for number, payload in enumerate(PAYLOADS):
        if number % MAX_USABLE_KEYS == 0:
            account = make_account()
            yield account.user
        form = IssueApiKeyForm({"account": account.pk, "name": payload})
        if form.is_valid():
            issue_key(**form.cleaned_data, by="boss")


def type_usernames(office: Office) -> Iterator[str]:
    """Each publishes a signal; those that the form of the back office refuses are written past it."""
    instrument = Instrument.objects.get(symbol=FIRST_SYMBOL)
    # Without the page around it, which takes a moment each time.
    request: Any = RequestFactory().get("/")
    request.user = office.user
    form_class = admin.site._registry[User].get_form(request)
    for number, name in enumerate(USERNAMES):
        form = form_class({"username": name, "usable_password": "false"})
        if form.is_valid():
            user = form.save()
        else:
            yield name
            user = make_user(name, email=f"hostile{number}@example.com")
        # Lists show the newest.
        make_signal(instrument, user, published_at=NOON + timedelta(seconds=number))


def edit_pages() -> Iterator[str]:
    """Where a text stands in an attribute, those that would leave it."""
    for rows in (
        NewsItem.objects.filter(title__startswith='"'),
        Instrument.objects.filter(name__startswith='"'),
    ):
        yield from map(change, rows)
