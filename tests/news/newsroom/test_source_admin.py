"""News sources in the back office: what is wrong is seen, and put right."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib import admin
from django.utils import timezone

from news.models import Source
from news.newsroom.source_admin import SourceAdmin
from tests.accounts.back_office.office import Office, add_to, change, list_of, logged, said, text_of
from tests.factories import NOON
from tests.news.ingest.made_feeds import make_source

pytestmark = pytest.mark.django_db
FORM = {
    "name": "Example Wire",
    "address": "https://example-wire.example/rss",
    "language": "en",
    "trust": "review",
    "is_active": "on",
    "interval_s": "300",
}


def save(office: Office, source: Source, **fields: Any) -> Any:
    return office.client.post(change(source), FORM | fields)


def test_a_broken_source_stands_first_with_its_reason_and_each_has_a_state(office: Office) -> None:
    sources = {
        "new": make_source("New"),
        "paused": make_source("Paused", is_active=False),
        "failing": make_source("Failing", failures=1, interval_s=90),
        "broken": make_source("Broken", polled_at=NOON, failures=4, last_error="The answer was 404"),
    }
    make_source("Fine", polled_at=NOON, outcome="3 new, 12 known")
    page = text_of(office.get(list_of(Source)))
    assert page.index("Broken") < page.index("Fine")
    assert "The answer was 404, 4 times in a row" in page
    assert "3 new, 12 known" in page
    pages: Any = admin.site.get_model_admin(Source)
    assert [pages.state(source) for source in sources.values()] == list(sources)
    assert [pages.every(source) for source in sources.values()] == ["5 min", "5 min", "90 s", "5 min"]


def test_a_source_is_added_and_due_at_once_and_another_address_starts_anew(office: Office) -> None:
    office.client.post(add_to(Source), FORM)
    source = Source.objects.get()
    assert list(Source.objects.due(timezone.now())) == [source]
    later = timezone.now() + timedelta(hours=9)
    polled = {"etag": '"7"', "modified": "then", "failures": 5, "last_error": "Oops"}
    Source.objects.update(**polled, next_poll_at=later)
    save(office, source, address="https://other.example/rss")
    source.refresh_from_db()
    assert (source.etag, source.modified, source.failures, source.last_error) == ("", "", 0, "")
    assert source.next_poll_at <= timezone.now()


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("address", "https://example.com:22/", "Port 22 is none of 80, 443, 8080, 8443."),
        ("interval_s", "10", "Ensure this value is greater than or equal to 60."),
    ],
)
def test_what_cannot_be_polled_is_refused_in_words(
    office: Office, field: str, value: str, reason: str
) -> None:
    assert reason in text_of(office.client.post(add_to(Source), FORM | {field: value}))
    assert not Source.objects.exists()


def test_an_edit_leaves_alone_what_polling_wrote_meanwhile(office: Office, monkeypatch: Any) -> None:
    source, save_model = make_source(), SourceAdmin.save_model

    def poll_meanwhile(*args: Any) -> None:
        Source.objects.update(outcome="1 new", etag='"8"')
        save_model(*args)

    monkeypatch.setattr(SourceAdmin, "save_model", poll_meanwhile)
    save(office, source, trust="publish")
    source.refresh_from_db()
    assert (source.trust, source.outcome, source.etag) == ("publish", "1 new", '"8"')


def test_sources_are_paused_resumed_and_polled_at_will(office: Office) -> None:
    later = timezone.now() + timedelta(hours=9)
    source = make_source(next_poll_at=later)
    office.act("pause_chosen", source)
    assert said(office.act("poll_chosen", source))[-1] == "Paused, so not polled: Example Wire."
    assert not Source.objects.due(timezone.now()).exists()
    office.act("resume_chosen", source)
    assert Source.objects.due(timezone.now()).exists()
    assert [text for _, text in logged(source)] == ["Paused.", "Asked to poll now.", "Resumed."]
